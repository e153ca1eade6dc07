import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { flowErrors } from '../../routers/auth/identity-provider.ts';
import { apiPage } from '../../scripts/docs-api.ts';
import { configurationPage, namedAsRequired } from '../../scripts/docs-configuration.ts';
import { errorsPage } from '../../scripts/docs-errors.ts';
import { eventsPage } from '../../scripts/docs-events.ts';
import { anchorOf, documents, pages } from '../../scripts/docs-site.ts';
import { problemOfImport, roomNames } from '../../scripts/rooms.ts';
import { requiredInProduction, variableNames } from '../../server/config/index.ts';
import { pagePaths, servicePaths } from '../../server/shared/page-paths.ts';

const root = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
/** Without code blocks, which may contain text that looks like a link or a heading. */
const proseOf = (file: string) => read(file).replace(/^ *```.*?^ *```$/gms, '');

const anchorsIn = (file: string) => [...proseOf(file).matchAll(/^#+ (.+)$/gm)].map(([, text = '']) => anchorOf(text));

test.each(documents)('the links of %s resolve', (file) => {
  const targets = [...proseOf(file).matchAll(/\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]+))?\)/g)];
  const broken = targets.filter(([, path = '', anchor]) => {
    const target = path === '' ? file : normalize(join(dirname(file), path));
    if (target.startsWith('..') || !existsSync(join(root, target))) return true;
    return anchor !== undefined && !anchorsIn(target).includes(anchor);
  });
  expect(broken.map(([link]) => link)).toEqual([]);
});

test('the files that documents name exist', () => {
  const named = documents.flatMap((file) =>
    [...proseOf(file).matchAll(/`((?:server|routers|entities|client|scripts|test|docs)\/[\w./-]+\.\w+)`/g)].map(
      ([, path = '']) => ({ file, path }),
    ),
  );
  expect(named.filter(({ path }) => !existsSync(join(root, path)))).toEqual([]);
});

test('SECURITY.md names test files', () => {
  const named = [...read('SECURITY.md').matchAll(/\b(?:contract|faults|operations|unit)\/[\w/-]+/g)].map(
    ([path]) => path,
  );
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((path) => !existsSync(join(root, `test/${path}.test.ts`)))).toEqual([]);
});

test('docs/oauth-security.md names tests by their files and titles', () => {
  const rows = [...read('docs/oauth-security.md').matchAll(/^\| [\d.]+ \|.*\|$/gm)].map(([row]) => row);
  expect(rows.length).toBeGreaterThan(20);
  const unheld = rows.filter((row) => {
    const named = [...row.matchAll(/`([\w/-]+)` “([^”]+)”/g)];
    return named.length === 0 || !named.every(([, path, title]) => hasTest(`test/${path}.test.ts`, title));
  });
  expect(unheld).toEqual([]);
});

const hasTest = (file: string, title = '') =>
  existsSync(join(root, file)) &&
  [...read(file).matchAll(/\b(?:test|describe)(?:\.each\(.*?\))?\(\s*['"`](.*?)['"`],/gs)].some(
    ([, found]) => found === title,
  );

test('every document is a page of the site', () => expect([...pages].sort()).toEqual([...documents].sort()));

const sources = ['server', 'routers', 'entities', 'client', 'test'].flatMap((folder) =>
  globSync(`${folder}/**/*.{ts,tsx}`, { cwd: root, exclude: ['**/node_modules/**', '**/dist/**'] }),
);

/** Whether a document has a section by its number (`5.6` may be the sixth point of section 5) or by its heading. */
function hasSection(document: string, number: string | undefined, heading: string | undefined): boolean {
  const text = read(document);
  if (heading !== undefined) return [...text.matchAll(/^#+ (.+)$/gm)].some(([, title]) => title === heading);
  if (number === undefined) return true;
  const [section = '', point] = number.split('.');
  const [, content = ''] = text.split(new RegExp(`^## ${section}\\. .*$`, 'm'));
  if (point === undefined) return content !== '';
  return new RegExp(`^(?:### ${section}\\.)?${point}[. ]`, 'm').test(content.split(/^## /m)[0] ?? '');
}

test('documents and sections named in comments exist', () => {
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

describe('docs/architecture.md', () => {
  const text = read('docs/architecture.md');

  test('lists every directory', () => {
    const [, map = ''] = /## Files\n\n```\n(.*?)```/s.exec(text) ?? [];
    const directories = ['server', 'docs', 'test'].flatMap((top) => [
      top,
      ...readdirSync(join(root, top), { withFileTypes: true })
        .filter((entry) => entry.isDirectory() && !/^\.|^node_modules$/.test(entry.name))
        .map(({ name }) => `${top}/${name}`),
    ]);
    expect(directories.filter((name) => !map.includes(`\n${name}/`))).toEqual([]);
  });

  test('lists the rooms of server/accounts and their imports', () => {
    const [, table = ''] = /\| Room \|.*?\n\|---.*?\n(.*?)\n\n/s.exec(text) ?? [];
    const listed = table.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
    const rooms = roomNames.flatMap((name) => /^server\/accounts\/(.+)$/.exec(name)?.[1] ?? []);
    expect(listed.map(([, room]) => room).sort()).toEqual(rooms.sort());
    for (const [, room = '', , imports = ''] of listed) {
      const allowed = rooms.filter(
        (other) =>
          other !== room && !problemOfImport(`server/accounts/${room}/a.ts`, `server/accounts/${other}/index.ts`),
      );
      expect([room, imports.split(', ').sort()]).toEqual([room, allowed.length > 0 ? allowed : ['–']]);
    }
  });

  test('names files that exist', () => {
    const named = [...text.matchAll(/`((?:server|routers|entities|client|scripts|test)\/[\w./-]+)`/g)].map(
      ([, path = '']) => path,
    );
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});

test('README is a page: at most 150 lines and 900 words', () => {
  const text = read('README.md');
  expect(text.split('\n').length).toBeLessThanOrEqual(150);
  expect(text.split(/\s+/).length).toBeLessThanOrEqual(900);
});

test('README lists the variables that production requires', () => {
  const [, table = ''] = /\n\| Variable \|.*?\n\|---.*?\n(.*?)\n\n/s.exec(read('README.md')) ?? [];
  const listed = table.split('\n').flatMap((line) => line.split('|')[1]?.match(/[A-Z0-9_]+/g) ?? []);
  expect(listed).toEqual(requiredInProduction);
});

test('the commands that documents name are in package.json', () => {
  const named = documents.flatMap((file) =>
    [...read(file).matchAll(/\bnpm run (?:--silent )?([a-z0-9:-]+)/g)].map(([, name = '']) => ({ file, name })),
  );
  const packages = ['client', 'test'].flatMap((folder) =>
    globSync(`${folder}/**/package.json`, { cwd: root, exclude: ['**/node_modules/**'] }),
  );
  const scripts = packages.flatMap((file) => Object.keys(JSON.parse(read(file)).scripts ?? {}));
  const known = new Set([...Object.keys(packageJson.scripts), ...scripts]);
  expect(named.filter(({ name }) => !known.has(name))).toEqual([]);
});

test('docs/api.md is the output of `npm run docs:api`', () => expect(apiPage.committed).toBe(apiPage.page));

test('docs/errors.md is what `npm run docs:errors` makes', () => expect(errorsPage.committed).toBe(errorsPage.page));

test('docs/events.md is what `npm run docs:events` makes', () => expect(eventsPage.committed).toBe(eventsPage.page));

describe('docs/configuration.md', () => {
  const { committed, page } = configurationPage;

  test('is the output of `npm run docs:configuration`', () => expect(committed).toBe(page));

  test('lists every variable, in the order of the schema', () => {
    const listed = [...(committed.split('<!-- end')[0] ?? '').matchAll(/^\| (`[A-Z].*?) \|/gm)].flatMap(
      ([, cell = '']) => cell.match(/[A-Z0-9_<>]+/g) ?? [],
    );
    expect(listed.filter((name) => variableNames.includes(name))).toEqual(variableNames);
  });

  test('marks the variables that production requires', () => expect(namedAsRequired).toEqual(requiredInProduction));
});

describe('docs/front-ends.md', () => {
  const section = read('docs/front-ends.md');

  test('lists exactly the pages that such a front end serves', () => {
    const [, table = ''] = /\n\| Page \|.*?\n\|---.*?\n(.*?)\n\n/s.exec(section) ?? [];
    const first = table.split('\n').map((row) => row.split('|')[1] ?? '');
    const named = first.flatMap((cell) => [...cell.matchAll(/`([^`?]+)[^`]*`/g)].map(([, path]) => path));
    expect(named.sort()).toEqual(Object.values(pagePaths).sort());
  });

  test('lists every path of the service', () => {
    const [, paths = ''] = /\nThe proxy sends these to the service.*?: (.*?)\n\n/s.exec(section) ?? [];
    const named = [...paths.matchAll(/`(\/[^`]+)`/g)].map(([, path]) => path);
    expect(named.sort()).toEqual([...servicePaths].sort());
  });

  test('lists every reason that such a page gets', () => {
    const [, causes = ''] = /\n`error` is one of (.*?)\.\n/s.exec(section) ?? [];
    const named = [...causes.matchAll(/`(\w+)`/g)].map(([, cause]) => cause);
    expect([...new Set(named)].sort()).toEqual([...flowErrors].sort());
  });
});
