import Koa from 'koa';
import { expect, test } from 'vitest';
import { askedLanguage, languageOfPage } from '../../../server/http/cookies/language.ts';
import { boundedAccept } from '../../../server/http/security.ts';

const app = new Koa();

type Asked = Parameters<typeof askedLanguage>[0];

/** A request with these headers. */
const request = (headers: Record<string, string>, url = '/') =>
  app.createContext({ headers, url, socket: {} } as never, {} as never) as unknown as Asked;

test.each([
  ['de-CH,de;q=0.9,en;q=0.8', 'de'],
  ['it,fr;q=0.5', 'fr'],
  ['es-419', 'es'],
  ['en-US', 'en'],
  ['ja', undefined],
  ['ja,*;q=0.5', undefined],
  ['*', undefined],
  ['de;q=0', undefined],
  ['', undefined],
])('a browser that sends %j gets %s', (header, language) => {
  expect(askedLanguage(request({ 'accept-language': header }))).toBe(language);
});

test('a program without the header gets none, and pages in English', () => {
  expect(askedLanguage(request({}))).toBeUndefined();
  expect(languageOfPage(request({}))).toBe('en');
});

test('the language chosen in this browser comes first; an unknown one is ignored', () => {
  const header = { 'accept-language': 'de' };
  expect(askedLanguage(request({ ...header, cookie: 'auth_language=es' }))).toBe('es');
  expect(askedLanguage(request({ ...header, cookie: 'auth_language=xx' }))).toBe('de');
  expect(askedLanguage(request({ ...header, cookie: 'auth_language=es; auth_language=fr' }))).toBe('de');
});

test.each([
  ['fr', 'fr'],
  ['ja de-CH fr', 'de'],
  ['FR', 'fr'],
  ['ja', 'es'],
  ['', 'es'],
])('a page that an application asks for in %j is in %s, before the language of this browser', (locales, language) => {
  const url = `/authorize?${new URLSearchParams({ ui_locales: locales })}`;
  const asked = request({ cookie: 'auth_language=es' }, url);
  expect([languageOfPage(asked), askedLanguage(asked)]).toEqual([language, 'es']);
});

test.each([
  ['Accept-Language', (asked: Asked) => askedLanguage(asked)],
  ['Accept-Encoding', (asked: Asked) => asked.acceptsEncodings('br', 'gzip', 'identity')],
  ['Accept', (asked: Asked) => asked.accepts('json', 'html')],
])('an %s of any length costs less than a millisecond', async (name, parse) => {
  const hostile = [
    'a,'.repeat(8000),
    'a/b,'.repeat(4000),
    'a/b;c="d,'.repeat(1700),
    'x;q=0.1,'.repeat(2000),
    ','.repeat(16_000),
    'a,'.repeat(249),
    `${' '.repeat(498)}de`,
  ];
  for (const header of hostile) {
    const handle = () => {
      const incoming = request({ [name.toLowerCase()]: header });
      return boundedAccept(incoming, async () => void parse(incoming));
    };
    for (let i = 0; i < 100; i++) await handle();
    const start = process.cpuUsage();
    for (let i = 0; i < 100; i++) await handle();
    expect(process.cpuUsage(start).user / 1000 / 100).toBeLessThan(1);
  }
});

test('a header of usual length is parsed, a longer one ignored', async () => {
  for (const [length, language] of [
    [500, 'de'],
    [501, undefined],
  ] as const) {
    const incoming = request({ 'accept-language': 'de'.padStart(length) });
    await boundedAccept(incoming, async () => undefined);
    expect(askedLanguage(incoming)).toBe(language);
  }
});
