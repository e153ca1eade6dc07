import { globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const documents = ['*.md', 'client/*.md', 'docs/*.md', 'test/*.md', 'test/bench/*.md'].flatMap((pattern) =>
  globSync(pattern, { cwd: root }),
);

/** As GitHub makes them of headings. */
const anchorsIn = (file: string) =>
  [...read(file).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

test.each(documents)('the links of %s lead to what is there', (file) => {
  const targets = [...read(file).matchAll(/\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)/g)];
  const broken = targets.filter(([, path = '', anchor]) => {
    const target = path === '' ? file : join(dirname(file), path);
    const isThere = globSync(target, { cwd: root }).length > 0;
    return !isThere || (anchor !== undefined && !anchorsIn(target).includes(anchor));
  });
  expect(broken.map(([link]) => link)).toEqual([]);
});

test('the map of the files in README names every directory', () => {
  const [, map = ''] = /## Files\n\n```\n(.*?)```/s.exec(read('README.md')) ?? [];
  const directories = ['server', 'docs', 'test'].flatMap((top) => [
    top,
    ...readdirSync(join(root, top), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${top}/${name}`),
  ]);
  expect(directories.filter((name) => !map.includes(`\n${name}/`))).toEqual([]);
});
