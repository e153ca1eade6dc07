import { globSync, readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { problemOfImport, problemOfPackage } from './rooms.ts';

/** Part of `npm run lint`: checks every import of the product against rooms.ts. */
const IMPORTS = /\b(?:from|import)\s*\(?\s*'([^']+)'/g;

const problems = globSync('{entities,server,routers,client/pages}/**/*.{ts,tsx}', { exclude: ['**/dist/**'] }).flatMap(
  (file) =>
    [...readFileSync(file, 'utf8').matchAll(IMPORTS)].map(([, name = '']) =>
      name.startsWith('.') ? problemOfImport(file, normalize(join(file, '..', name))) : problemOfPackage(file, name),
    ),
);
const found = problems.filter((problem) => problem !== undefined);
if (found.length > 0) {
  process.stderr.write(`${found.join('\n')}\n`);
  process.exitCode = 1;
}
