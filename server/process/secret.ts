import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, ConfigError } from '../config/index.ts';
import { newToken } from '../lib/random-token.ts';
import type { SecretParts } from '../secrets.ts';

const LENGTH = newToken().length;

/** The configured secrets; outside production, without them, a random one that is created once in DATA_DIR. */
export function applicationSecrets({ appSecrets, dataDir }: Pick<Config, 'appSecrets' | 'dataDir'>): SecretParts {
  if (appSecrets) return appSecrets;
  const file = join(dataDir, 'secret');
  if (!existsSync(file)) create(file);
  const secret = readFileSync(file, 'utf8');
  if (secret.length !== LENGTH) {
    throw new ConfigError([
      `${file} does not contain the secret that the service created: restore it, or delete it to get a new one`,
    ]);
  }
  return [secret];
}

function create(file: string): void {
  const draft = `${file}.${process.pid}`;
  try {
    // Synced to disk before it gets its name: after a power cut an empty file would be a known secret.
    writeFileSync(draft, newToken(), { mode: 0o600, flush: true });
    // Linking is atomic and never replaces a file: two processes that start concurrently get the same secret.
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}
