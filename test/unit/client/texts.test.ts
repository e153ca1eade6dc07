import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { languages } from '../../../server/shared/texts/languages.ts';
import type { Text } from '../../../server/shared/texts/template.ts';
import { formsOf, namesIn, partOf, readTexts, writer } from '../../../server/texts/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

const root = resolve(import.meta.dirname, '../../..');
const texts = readTexts(undefined);
const keys = Object.keys(texts.en);

function withoutComments(source: string): string {
  return source.replace(/^\s*(?:\/\*\*[\s\S]*?\*\/|\/\/.*)$/gm, '');
}

/** Every source file with texts, by its path from the root. */
const sources = new Map(
  globSync(['client/pages/**/*.{ts,tsx}', 'server/**/*.ts'], { cwd: root, exclude: ['client/pages/dist/**'] }).map(
    (path) => [path, withoutComments(readFileSync(join(root, path), 'utf8'))],
  ),
);

const PARTS = [...new Set(keys.map(partOf))];
const literal = new RegExp(`['\`]((?:${PARTS.join('|')})\\.[\\w.\${}-]+)['\`]`, 'g');

/** The keys in a file; for a template (`dashboard.events.${kind}`) all with its prefix. */
const usedIn = (source: string): { name: string; keys: string[] }[] =>
  [...source.matchAll(literal)].map(([, name = '']) => {
    const shape = name.replace(/[.]/g, '\\.').replace(/\$\{[^}]*\}/g, '[\\w:-]+');
    return { name, keys: keys.filter((key) => new RegExp(`^${shape}$`).test(key)) };
  });

describe.each(languages.filter((language) => language !== 'en'))('the texts in %s', (language) => {
  test('have exactly the keys of the English texts', () => {
    expect(Object.keys(texts[language])).toEqual(keys);
  });

  test('have the placeholders and elements of the English texts', () => {
    const names = (text: Text | undefined) => [...new Set(formsOf(text).flatMap(namesIn))].sort();
    const different = keys.filter((key) => `${names(texts[language][key])}` !== `${names(texts.en[key])}`);
    expect(different).toEqual([]);
  });

  test('have the plural forms of the language', () => {
    const categories = new Intl.PluralRules(language)
      .resolvedOptions()
      .pluralCategories.filter((one) => one !== 'many');
    const wrong = keys.filter((key) => {
      const text = texts[language][key];
      return typeof text === 'object' && categories.some((category) => text[category] === undefined);
    });
    expect(wrong).toEqual([]);
  });

  test('are not empty', () => {
    expect(keys.filter((key) => formsOf(texts[language][key]).some((form) => form.trim() === ''))).toEqual([]);
  });
});

test('every text is used', () => {
  const used = new Set([...sources.values()].flatMap(usedIn).flatMap((one) => one.keys));
  expect(keys.filter((key) => !used.has(key))).toEqual([]);
});

test('every text in use exists', () => {
  const missing = [...sources].flatMap(([path, source]) =>
    usedIn(source).flatMap(({ name, keys }) => (keys.length === 0 ? [`${path}: ${name}`] : [])),
  );
  expect(missing).toEqual([]);
});

/** The page files that a file imports, directly or not. */
function reachedFrom(path: string, seen = new Set<string>()): Set<string> {
  const source = sources.get(path);
  if (source === undefined || seen.has(path)) return seen;
  seen.add(path);
  for (const [, imported = ''] of source.matchAll(/ from '(\.[^']+)'/g)) {
    reachedFrom(relative(root, resolve(root, dirname(path), imported)), seen);
  }
  return seen;
}

/** As server/http/web/pages.ts sends them. */
test.each([
  ['client/pages/main.tsx', ['common', 'entry']],
  ['client/pages/views/authorize.tsx', ['common', 'entry']],
  ['client/pages/views/device.tsx', ['common', 'entry']],
  ['client/pages/views/register.tsx', ['common', 'entry']],
  ['client/pages/views/forgot-password.tsx', ['common', 'entry']],
  ['client/pages/views/mailed-links/pages.ts', ['common', 'entry']],
  ['client/pages/views/login/email-code.tsx', ['common', 'entry']],
  ['client/pages/views/login/second-factor.tsx', ['common', 'entry']],
  ['client/pages/views/log-out-request.tsx', ['common', 'entry']],
  ['client/pages/views/dashboard/pages.ts', ['common', 'dashboard']],
  ['client/pages/views/admin/view.tsx', ['common', 'dashboard', 'admin']],
  ['client/pages/views/webhooks/view.tsx', ['common', 'dashboard', 'admin', 'webhooks']],
  ['client/pages/views/applications/view.tsx', ['common', 'dashboard', 'admin', 'apps']],
])('%s uses texts only of the parts %s', (start, parts) => {
  const reached = reachedFrom(start);
  expect(reached.size).toBeGreaterThan(5);
  const elsewhere = [...reached].flatMap((path) =>
    usedIn(sources.get(path) ?? '').flatMap(({ keys }) =>
      keys.filter((key) => !parts.includes(partOf(key))).map((key) => `${path}: ${key}`),
    ),
  );
  expect(elsewhere).toEqual([]);
});

describe('the texts of an operator', () => {
  const folder = (files: Record<string, string>) => {
    const path = temporaryDirectory('texts');
    mkdirSync(path, { recursive: true });
    for (const [name, content] of Object.entries(files)) writeFileSync(join(path, name), content);
    return path;
  };

  test('replace the built-in ones, in their language only', () => {
    const own = readTexts(folder({ 'de.json': '{ "common": { "notFound": { "title": "Hier ist nichts" } } }' }));
    expect(writer(own, 'de')('common.notFound.title')).toBe('Hier ist nichts');
    expect(writer(own, 'de')('common.toStart')).toBe(texts.de['common.toStart']);
    expect(own.en).toEqual(texts.en);
  });

  test.each([
    [
      'an unknown text',
      { 'de.json': '{ "common": { "nothing": "x" } }' },
      'de.json: common.nothing is no text of ours',
    ],
    ['a value that is not a text', { 'de.json': '{ "common": { "notFound": { "title": 1 } } }' }, 'must be a text'],
    [
      'an unknown value',
      { 'fr.json': '{ "common": { "notFound": { "title": "Pas {ici}" } } }' },
      'fr.json: common.notFound.title has {ici}, which ours has not',
    ],
    [
      'an unknown value in an element',
      { 'de.json': '{ "common": { "mailboxHint": "<link>{x}</link>" } }' },
      'de.json: common.mailboxHint has {x} in <link>, which ours has not',
    ],
    ['an empty text', { 'de.json': '{ "common": { "toStart": " " } }' }, 'common.toStart must be a text'],
    [
      'a subject of two lines',
      { 'de.json': '{ "mails": { "invitation": { "subject": "a\\nb" } } }' },
      'de.json: mails.invitation.subject must be one line',
    ],
    ['a text in place of all', { 'fr.json': '"abc"' }, 'TEXTS_DIR fr.json must be an object'],
    ['a name of every object', { 'de.json': '{ "constructor": "x" }' }, 'de.json: constructor is no text of ours'],
    ['its prototype', { 'de.json': '{ "__proto__": "x" }' }, 'de.json: __proto__ is no text of ours'],
    ['an unknown language', { 'xx.json': '{}' }, 'has xx.json: the languages are en.json, de.json, fr.json, es.json'],
    ['no JSON', { 'es.json': '{' }, 'es.json cannot be read'],
  ])('%s stops the start', (_, files, problem) => {
    expect(() => readTexts(folder(files as Record<string, string>))).toThrow(problem);
  });

  test('a file instead of a folder stops the start', () => {
    expect(() => readTexts(import.meta.filename)).toThrow('texts.test.ts cannot be read: ENOTDIR');
  });

  test('a missing folder stops the start', () => {
    expect(() => readTexts('/nowhere')).toThrow('TEXTS_DIR names /nowhere, which is not there');
  });
});
