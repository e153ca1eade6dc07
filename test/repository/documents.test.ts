import { getCiphers, getHashes } from 'node:crypto';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { flowErrors } from '../../routers/auth/identity-provider.ts';
import { apiPage } from '../../scripts/docs-api.ts';
import { configurationPage, namedAsRequired } from '../../scripts/docs-configuration.ts';
import { codePages, errorsPage } from '../../scripts/docs-errors.ts';
import { eventsPage } from '../../scripts/docs-events.ts';
import { anchorOf, documents, pages } from '../../scripts/docs-site.ts';
import { problemOfImport, roomNames } from '../../scripts/rooms.ts';
import { storedData } from '../../server/accounts/data/stored-data.ts';
import { MAX_SESSIONS } from '../../server/accounts/sessions/of-user.ts';
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

/** Pages of standards: each row of a requirement names its tests. */
const standardPages = ['docs/oauth-security.md', 'docs/asvs.md', 'docs/standards.md'];

test.each(standardPages)('%s names tests by their files and titles', (file) => {
  const rows = read(file)
    .split('\n')
    .filter((line) => line.startsWith('| ') && /`[\w/-]+` “/.test(line));
  expect(rows.length).toBeGreaterThan(20);
  const unheld = rows.flatMap((row) =>
    [...row.matchAll(/`([\w/-]+)` “([^”]+)”/g)].filter(([, path, title]) => !hasTest(`test/${path}.test.ts`, title)),
  );
  expect(unheld.map(([named]) => named)).toEqual([]);
});

test('docs/oauth-security.md has a test for each rule', () => {
  const rows = [...read('docs/oauth-security.md').matchAll(/^\| [\d.]+ \|.*\|$/gm)].map(([row]) => row);
  expect(rows.filter((row) => !/`[\w/-]+` “/.test(row))).toEqual([]);
});

/** The sections of ASVS 5.0.0 in each chapter, by their numbers of requirements: 345 in all. */
const asvsSections = [
  [2, 10, 12, 3, 3],
  [3, 3, 5, 2],
  [1, 3, 5, 8, 8, 1, 5],
  [5, 5, 2, 4],
  [1, 6, 3, 3],
  [3, 12, 8, 6, 8, 4, 2, 4],
  [3, 4, 2, 5, 3, 2],
  [4, 4, 3, 2],
  [3, 4],
  [2, 3, 5, 16, 5, 2, 3],
  [4, 5, 5, 4, 2, 2, 2],
  [5, 2, 5],
  [4, 6, 4, 7],
  [2, 8, 3],
  [5, 5, 7, 4],
  [1, 5, 4, 3, 4],
  [2, 8, 2],
];

test('docs/asvs.md has a place for each requirement, and one only', () => {
  const expected = asvsSections.flatMap((chapter, c) =>
    chapter.flatMap((count, s) => Array.from({ length: count }, (_, i) => `${c + 1}.${s + 1}.${i + 1}`)),
  );
  const elsewhere = [...read('docs/oauth-security.md').matchAll(/^\| (10\.\d+\.\d+) \|/gm)].map(([, number]) => number);
  const here = read('docs/asvs.md')
    .split('\n')
    .filter((line) => /^(?:\| \d|- |Nothing is claimed)/.test(line))
    .flatMap(
      (line) =>
        (line.startsWith('|') ? line.split('|', 2) : [line]).join().match(/(?<![\d.])\d+\.\d+\.\d+(?![\d.]*\d)/g) ?? [],
    );
  expect(expected).toHaveLength(345);
  expect([...here, ...elsewhere].sort()).toEqual(expected.sort());
});

test('the counts of docs/asvs.md are those of its rows, and of the 253 requirements of levels 1 and 2', () => {
  const text = read('docs/asvs.md');
  const counts: Record<string, number> = Object.fromEntries(
    [...text.matchAll(/^\| ([a-z][^|]*) \| (\d+) \|$/gm)].map(([, of, n]) => [of, Number(n)]),
  );
  expect(counts['held by tests, below']).toBe(text.match(/^\| \d+\.\d+\.\d+ \| [12] \|/gm)?.length);
  expect(counts['not held']).toBe(text.match(/^- \d+\.\d+\.\d+ \(level [12]\)/gm)?.length);
  expect(Object.values(counts).reduce((sum, n) => sum + n, 0)).toBe(253);
});

const hasTest = (file: string, title = '') =>
  existsSync(join(root, file)) &&
  [
    ...read(file).matchAll(
      /\b(?:test|describe)(?:\.concurrent)?(?:\.each(?:<.*?>(?=\())?\(.*?\))?\(\s*['"`](.*?)['"`],/gs,
    ),
  ].some(([, found]) => found === title);

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

test('docs/errors is what `npm run docs:errors` makes', () => {
  expect(errorsPage.committed).toBe(errorsPage.page);
  const files = readdirSync(join(root, 'docs/errors')).filter((file) => file !== 'README.md');
  expect(Object.fromEntries(files.map((file) => [file, read(`docs/errors/${file}`)]))).toEqual(codePages);
});

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

  test('says how many sessions a user may have', () =>
    expect(section).toContain(`A user may have ${MAX_SESSIONS.toLocaleString('en')} sessions at a time`));

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

describe('SECURITY.md, on cryptography', () => {
  const text = read('SECURITY.md').split('## Cryptography')[1]?.split('\n## ')[0] ?? '';
  const rows = text.split('\n').filter((line) => line.startsWith('| `'));
  const isAlgorithm = (row: string) => row.split('|').length === 5;
  const namesIn = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);

  const ofNode = new Set([...getCiphers(), ...getHashes()].map((name) => name.toLowerCase()));
  const ofTokens = /^(?:(?:hs|rs|ps|es)(?:256|384|512)|eddsa|ed25519|ed448|p-\d{3}|secp256k1)$/;
  const ofPasswords = /^(?:pbkdf2|scrypt|argon2|bcrypt)$/;
  /** Each algorithm with the files that name it. */
  const used = new Map<string, Set<string>>();
  for (const file of sources.filter((path) => path.startsWith('server/'))) {
    const words = read(file).matchAll(
      /(?<=['"`])[\w-]{2,40}(?=['"`])|\b(?:pbkdf2|scrypt|sha\d+)\b|@node-rs\/(?:argon2|bcrypt)/gi,
    );
    for (const [word] of words) {
      const name = word.replace('@node-rs/', '').toLowerCase();
      if (!ofNode.has(name) && !ofTokens.test(name) && !ofPasswords.test(name)) continue;
      used.set(name, (used.get(name) ?? new Set()).add(file));
    }
  }

  test('the table has every algorithm that the service names, and no other', () => {
    const listed = rows.filter(isAlgorithm).flatMap((row) => namesIn(row.split('|')[1]));
    expect(listed.sort()).toEqual([...used.keys()].sort());
  });

  test('a weak or rare one is used where the table says, and nowhere else', () => {
    for (const name of ['md5', 'sha1', 'aes-256-ctr', 'aes-256-gcm']) {
      const row = rows.find((each) => namesIn(each.split('|')[1]).includes(name));
      const withoutNames = [...(used.get(name) ?? [])].filter((file) => !file.endsWith('hashes/index.ts'));
      expect(withoutNames.sort()).toEqual(namesIn(row?.split('|')[3]).sort());
    }
  });

  test('no cipher is ECB or CBC, and no key is of RSA', () => {
    expect([...used.keys()].filter((name) => /ecb|cbc|des|rc4|rc2/.test(name))).toEqual([]);
    const made = sources
      .filter((file) => file.startsWith('server/'))
      .flatMap((file) => read(file).match(/generateKey(?:Pair)?(?:Sync)?\(['"].*?['"]/g) ?? []);
    expect(made).toEqual(["generateKeyPairSync('ec'"]);
  });

  test('the table of keys has every purpose of a key that is derived from APP_SECRET', () => {
    const [, union = ''] = /type Label =(.*?);/s.exec(read('server/secrets.ts')) ?? [];
    const [, sealed = ''] = /type SealedPurpose = (.*?);/s.exec(read('server/secrets.ts')) ?? [];
    const purposes = [...union.matchAll(/^ *\| [`']([a-z-]+)/gm), ...sealed.matchAll(/'([a-z-]+)'/g)].map(
      ([, name]) => name,
    );
    expect(purposes.length).toBeGreaterThan(8);
    expect(rows.filter((row) => !isAlgorithm(row)).flatMap(namesIn)).toEqual(expect.arrayContaining(purposes));
  });

  test('the packages of cryptography are those of production', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { dev?: true; devOptional?: true }>;
    };
    const kind =
      /crypt|noble|argon|^jose|webauthn\/server|otp|cipher|elliptic|forge|nacl|md5|sha\d|asn1|x509|signature|oauth|openid|oidc|pvts|peculiar/;
    const named = Object.entries(packages)
      .filter(([, { dev, devOptional }]) => !dev && !devOptional)
      .map(([path]) => path.replace(/^.*node_modules\//, ''))
      // Builds of one package for a platform.
      .filter((name) => kind.test(name) && !/^@node-rs\/\w+-/.test(name))
      .map((name) => name.replace(/^@peculiar\/.*/, '@peculiar/*'));
    const [, sentence = ''] = /\nNode's OpenSSL.*?Packages:(.*?)\. The service/s.exec(text) ?? [];
    expect(namesIn(sentence).sort()).toEqual([...new Set(named)].sort());
  });
});

test('SECURITY.md has time frames for updates, and CI fails on known vulnerabilities', () => {
  expect(read('SECURITY.md')).toMatch(/within\s+7 days.*within 30 days.*every 90 days/s);
  expect(read('.ci/run')).toMatch(/^npm run audit$/m);
  expect(packageJson.scripts.audit).toBe('node test/repository/audit.ts');
});

test('docs/operations.md lists what a line of the log has', () => {
  const [, fields = ''] = /log\[level\]\(\{(.*?)\n {4}\}\)/s.exec(read('server/http/request-log.ts')) ?? [];
  const names = [...fields.matchAll(/(?:^ {6}|&& \{ )(\w+)(?=[:,])/gm)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(6);
  const [, row = ''] = /\n\| requests \|(.*?)\n/.exec(read('docs/operations.md')) ?? [];
  expect(names.filter((name) => !row.includes(`\`${name}\``))).toEqual([]);
});

test('docs/design/data.md gives every part of an export a class', () => {
  const [, table = ''] = /## Classes\n(.*)/s.exec(read('docs/design/data.md')) ?? [];
  expect(Object.keys(storedData).filter((part) => !table.includes(`\`${part}\``))).toEqual([]);
});
