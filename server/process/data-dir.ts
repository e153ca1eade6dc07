import { accessSync, constants } from 'node:fs';
import { ensureDirectory } from '../directory.ts';

/** Makes DATA_DIR, and checks that it can be written to. Throws the file system's error. */
export function prepareDataDir(dataDir: string): void {
  ensureDirectory(dataDir);
  accessSync(dataDir, constants.W_OK);
}
