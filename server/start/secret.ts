import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, ConfigError } from '../config/index.ts';

/** 32 bytes in base64url. */
const LENGTH = 43;

/** The configured secret, or outside production one that is made once and kept in DATA_DIR. */
export function applicationSecret({ appSecret, dataDir }: Pick<Config, 'appSecret' | 'dataDir'>): string {
  if (appSecret) return appSecret;
  const file = join(dataDir, 'secret');
  if (!existsSync(file)) make(file);
  const secret = readFileSync(file, 'utf8');
  if (secret.length !== LENGTH) {
    throw new ConfigError([
      `${file} is not the secret that was written there: restore it, or delete it to get a new one`,
    ]);
  }
  return secret;
}

function make(file: string): void {
  const draft = `${file}.${process.pid}`;
  try {
    // On the disk before it gets its name: an empty file after a power cut would be a secret that anybody knows.
    writeFileSync(draft, randomBytes(32).toString('base64url'), { mode: 0o600, flush: true });
    // Linking is atomic and never replaces: of two processes that start at once, both end with the same secret.
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}
