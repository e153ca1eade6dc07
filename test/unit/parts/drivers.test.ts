import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** The CommonJS files that a new process loads with a module. */
const loadedBy = (module: string, packages: RegExp): string[] => {
  const script = `import { createRequire } from 'node:module';
    await import('${module}');
    console.log(JSON.stringify(Object.keys(createRequire(import.meta.url).cache)));`;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  return (JSON.parse(output) as string[]).filter((path) => packages.test(path));
};

const MYSQL = /node_modules\/mysql2\//;

test('a process on embedded parts loads no driver of MySQL', () => {
  expect(loadedBy('./server/parts/database/index.ts', MYSQL)).toEqual([]);
  expect(loadedBy('./server/parts/database/mysql-dialect.ts', MYSQL)).not.toEqual([]);
});
