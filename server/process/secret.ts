import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, ConfigError } from '../config/index.ts';
import type { SecretParts } from '../secrets.ts';

/** 32 bytes in base64url. */
const LENGTH = 43;

/** The configured secrets, or outside production a random one, created once in DATA_DIR. */
export function applicationSecrets({ appSecrets, dataDir }: Pick<Config, 'appSecrets' | 'dataDir'>): SecretParts {
  if (appSecrets) return appSecrets;
  const file = join(dataDir, 'secret');
  if (!existsSync(file)) create(file);
  const secret = readFileSync(file, 'utf8');
  if (secret.length !== LENGTH) {
    throw new ConfigError([
      `${file} is not the secret that was written there: restore it, or delete it to get a new one`,
    ]);
  }
  return [secret];
}

function create(file: string): void {
  const draft = `${file}.${process.pid}`;
  try {
    // On the disk before it gets its name: after a power cut the file must not be empty, which is a known secret.
    writeFileSync(draft, randomBytes(32).toString('base64url'), { mode: 0o600, flush: true });
    // Linking is atomic and never replaces: two processes that start at once get the same secret.
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}
