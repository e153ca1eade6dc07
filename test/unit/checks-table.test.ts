import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** The tables of test/README.md say which test holds each check and each fault: they must not promise what is not there. */
const folder = join(import.meta.dirname, '..');
const rows = readFileSync(join(folder, 'README.md'), 'utf8')
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter(([, number = '']) => /^F?\d+$/.test(number))
  .map(([, number = '', , tests = '']) => ({ number, tests }));
const numbered = (count: number, prefix = '') => Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`);
const fileOf = (name: string) => join(folder, `${name}.test.ts`);

test('each of the 78 checks and 21 faults has one row', () => {
  const expected = [...numbered(78), ...numbered(21, 'F')];
  expect(rows.map(({ number }) => number).toSorted()).toEqual(expected.toSorted());
});

test('each check names a test, by a file that is there and a part of a title in it', () => {
  const wrong = rows
    .filter(({ number }) => !number.startsWith('F'))
    .flatMap(({ number, tests }) => {
      const named = [...tests.matchAll(/`([^`]+)`([^`]*)/g)].flatMap(([, name = '', after = '']) => {
        const titles = [...after.matchAll(/“([^”]+)”/g)].map(([, title = '']) => title);
        const source = existsSync(fileOf(name)) ? readFileSync(fileOf(name), 'utf8') : '';
        return titles.length === 0 ? [`${name} without a title`] : titles.filter((title) => !source.includes(title));
      });
      return (tests.includes('“') ? named : ['no test']).map((problem) => `${number}: ${problem}`);
    });
  expect(wrong).toEqual([]);
});

test('each fault names files that are there', () => {
  const missing = rows
    .filter(({ number }) => number.startsWith('F'))
    .flatMap(({ number, tests }) => {
      const names = [...tests.matchAll(/`([^` ]+)`/g)].map(([, name = '']) => name);
      return (names.length ? names : ['no file'])
        .filter((name) => !existsSync(fileOf(join('faults', name))))
        .map((name) => `${number}: ${name}`);
    });
  expect(missing).toEqual([]);
});
