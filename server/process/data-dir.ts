import { accessSync, constants } from 'node:fs';
import { ensureDirectory } from '../lib/ensure-directory.ts';

/** Creates DATA_DIR and checks that it is writable. Throws the file system's error. */
export function prepareDataDir(dataDir: string): void {
  ensureDirectory(dataDir);
  accessSync(dataDir, constants.W_OK);
}
