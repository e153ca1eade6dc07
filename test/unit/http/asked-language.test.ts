import Koa from 'koa';
import { expect, test } from 'vitest';
import { askedLanguage, languageOf } from '../../server/http/cookies/language.ts';

const app = new Koa();

/** A request with these headers. */
const request = (headers: Record<string, string>) =>
  app.createContext({ headers, socket: {} } as never, {} as never) as unknown as Parameters<typeof askedLanguage>[0];

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
])('a browser that sends %j asks for %s', (header, language) => {
  expect(askedLanguage(request({ 'accept-language': header }))).toBe(language);
});

test('a program that sends no header asks for none, and a page for it is in English', () => {
  expect(askedLanguage(request({}))).toBeUndefined();
  expect(languageOf(request({}))).toBe('en');
});

test('the choice in this browser comes first; what is no language of ours is none', () => {
  const header = { 'accept-language': 'de' };
  expect(askedLanguage(request({ ...header, cookie: 'auth_language=es' }))).toBe('es');
  expect(askedLanguage(request({ ...header, cookie: 'auth_language=xx' }))).toBe('de');
  expect(askedLanguage(request({ ...header, cookie: 'auth_language=es; auth_language=fr' }))).toBe('de');
});

test('a header of any length costs less than a millisecond', () => {
  const hostile = [
    'a,'.repeat(8000),
    'x;q=0.1,'.repeat(2000),
    ','.repeat(16_000),
    'a,'.repeat(249),
    `${' '.repeat(498)}de`,
  ];
  for (const header of hostile) {
    const asked = request({ 'accept-language': header });
    for (let i = 0; i < 100; i++) askedLanguage(asked);
    const start = performance.now();
    for (let i = 0; i < 100; i++) askedLanguage(asked);
    expect((performance.now() - start) / 100).toBeLessThan(1);
  }
});
