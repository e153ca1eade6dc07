import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { allowedRooms, circleIn, problemOfImport, problemOfPackage } from './rooms.ts';

/**
 * Part of `npm run lint`: checks every import of the product against rooms.ts, that its rows allow no circle, and how
 * many files a folder has.
 */
const IMPORTS = /\b(?:from|import)\s*\(?\s*'([^']+)'/g;

const MAX_FILES_IN_FOLDER = 20;

const files = globSync('{entities,server,routers,client/pages,client/src}/**/*.{ts,tsx}', { exclude: ['**/dist/**'] });
const problems = files.flatMap((file) =>
  file.startsWith('client/src')
    ? []
    : [...readFileSync(file, 'utf8').matchAll(IMPORTS)].map(([, name = '']) =>
        name.startsWith('.') ? problemOfImport(file, normalize(join(file, '..', name))) : problemOfPackage(file, name),
      ),
);
const folders = Map.groupBy(files, dirname);
folders.delete('entities/migrations');
for (const [folder, { length }] of folders) {
  if (length > MAX_FILES_IN_FOLDER) problems.push(`${folder} has ${length} files, more than ${MAX_FILES_IN_FOLDER}`);
}
const circle = circleIn(allowedRooms(files));
if (circle) problems.push(`the rows of scripts/rooms.ts allow a circle: ${circle.join(' → ')}`);
const found = problems.filter((problem) => problem !== undefined);
if (found.length > 0) {
  process.stderr.write(`${found.join('\n')}\n`);
  process.exitCode = 1;
}
