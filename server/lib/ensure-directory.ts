import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a directory and its parents, for this user only. Level by level: Node's recursive form never returns where a
 * file system refuses in an unusual way (below /proc).
 */
export function ensureDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(path).isDirectory()) return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    ensureDirectory(dirname(path));
    mkdirSync(path, { mode: 0o700 });
  }
}
