import { globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { flowErrors } from '../../routers/identity-provider.ts';
import { variableNames } from '../../server/config/index.ts';
import { pagePaths, servicePaths } from '../../server/page-paths.ts';

const root = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const documents = [
  '*.md',
  'client/*.md',
  'client/examples/*.md',
  'docs/**/*.md',
  'test/*.md',
  'test/bench/*.md',
].flatMap((pattern) => globSync(pattern, { cwd: root }));

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

const sources = ['server', 'routers', 'entities', 'client', 'test'].flatMap((folder) =>
  globSync(`${folder}/**/*.{ts,tsx}`, { cwd: root, exclude: ['**/node_modules/**', '**/dist/**'] }),
);

/** Whether a document has a section by its number, where `5.6` may be the sixth point of section 5, or by its heading. */
function hasSection(document: string, number: string | undefined, heading: string | undefined): boolean {
  const text = read(document);
  if (heading !== undefined) return [...text.matchAll(/^#+ (.+)$/gm)].some(([, title]) => title === heading);
  if (number === undefined) return true;
  const [section = '', point] = number.split('.');
  const [, content = ''] = text.split(new RegExp(`^## ${section}\\. .*$`, 'm'));
  if (point === undefined) return content !== '';
  return new RegExp(`^(?:### ${section}\\.)?${point}[. ]`, 'm').test(content.split(/^## /m)[0] ?? '');
}

test('the documents, and their sections, that comments in the code name are in the repository', () => {
  const broken = sources.flatMap((file) => {
    const comments = read(file).replace(/\n\s*(?:\*|\/\/) ?/g, ' ');
    const named = comments.matchAll(/(\w[\w/-]*\.md)(?:,? section ([\d.]*\d)|,? [“"]([A-Z][^”"]+)[”"])?/g);
    return [...named].flatMap(([mention, name = '', number, heading]) => {
      const found = documents.filter((path) => `/${path}`.endsWith(`/${name}`));
      return found.some((path) => hasSection(path, number, heading)) ? [] : [`${file}: ${mention}`];
    });
  });
  expect(broken).toEqual([]);
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

test('the table of variables in README has all but NODE_ENV, in the order of .env.example', () => {
  const [, table = ''] = /\n\| Variable \|.*?\n\|---.*?\n(.*?)\n\n/s.exec(read('README.md')) ?? [];
  const named = table.split('\n').map((row) => row.split('|')[1]?.match(/(?<=`)[A-Z0-9_]+(?=`)/g) ?? []);
  const first = named.flatMap(([name]) => name ?? []);
  expect(first).toEqual(variableNames.filter((name) => first.includes(name)));
  expect(variableNames.filter((name) => !named.flat().includes(name))).toEqual(['NODE_ENV']);
});

describe('the section on a front end of one’s own', () => {
  const [, section = ''] = /\n## Your own front end\n(.*?)\n## /s.exec(read('README.md')) ?? [];

  test('names every page that such a front end serves, and no other', () => {
    const [, table = ''] = /\n\| Page \|.*?\n\|---.*?\n(.*?)\n\n/s.exec(section) ?? [];
    const first = table.split('\n').map((row) => row.split('|')[1] ?? '');
    const named = first.flatMap((cell) => [...cell.matchAll(/`([^`?]+)[^`]*`/g)].map(([, path]) => path));
    expect(named.sort()).toEqual(Object.values(pagePaths).sort());
  });

  test('names every path that goes to the service', () => {
    const [, paths = ''] = /\nTo the service go (.*?)\n\n/s.exec(section) ?? [];
    const named = [...paths.matchAll(/`(\/[^`]+)`/g)].map(([, path]) => path);
    expect(named.sort()).toEqual([...servicePaths].sort());
  });

  test('names every cause that such a page is told', () => {
    const [, causes = ''] = /\n`error` is one of (.*?)\. A token/s.exec(section) ?? [];
    const named = [...causes.matchAll(/`(\w+)`/g)].map(([, cause]) => cause);
    expect([...new Set(named)].sort()).toEqual([...flowErrors].sort());
  });
});
