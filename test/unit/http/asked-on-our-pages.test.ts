import Koa from 'koa';
import { expect, test } from 'vitest';
import { isAskedOnOurPages } from '../../../server/http/security.ts';

/** Where a navigation started, by headers that browsers set and pages cannot forge. */
const app = new Koa();
const ours = {
  origins: new Set(['https://accounts.example.com', 'https://shop.example']),
  acceptsLoopbackOrigins: false,
};

const isAsked = (headers: Record<string, string>) =>
  isAskedOnOurPages(app.createContext({ headers, socket: {} } as never, {} as never) as never, ours);

test.each<[string, Record<string, string>]>([
  ['a page of this origin', { 'sec-fetch-site': 'same-origin' }],
  ['a page that names no referrer', { 'sec-fetch-site': 'same-origin', origin: 'null' }],
  ['a front end on another site', { 'sec-fetch-site': 'cross-site', referer: 'https://shop.example/basket?item=1' }],
  ['a script of a front end', { 'sec-fetch-site': 'cross-site', origin: 'https://shop.example' }],
  ['a page of ours in an old browser', { referer: 'https://accounts.example.com/' }],
  ['a program', {}],
])('%s is an own page', (_, headers) => {
  expect(isAsked(headers)).toBe(true);
});

test.each<[string, Record<string, string>]>([
  ['a page of another site', { 'sec-fetch-site': 'cross-site' }],
  ['one that names itself', { 'sec-fetch-site': 'cross-site', referer: 'https://evil.test/https://shop.example' }],
  ['one in an old browser', { referer: 'https://evil.test/' }],
  ['a sibling host', { 'sec-fetch-site': 'same-site', referer: 'https://blog.example.com/' }],
  ['a sibling host that names no referrer', { 'sec-fetch-site': 'same-site' }],
  ['a script of another site', { origin: 'https://evil.test', referer: 'https://shop.example/' }],
  ['a page without an origin', { 'sec-fetch-site': 'cross-site', origin: 'null' }],
  ['a front end over plain http', { 'sec-fetch-site': 'cross-site', referer: 'http://shop.example/' }],
  ['a referrer that is no address', { 'sec-fetch-site': 'cross-site', referer: 'shop.example' }],
  ['what is typed, or opened in a mail program', { 'sec-fetch-site': 'none' }],
])('%s is not an own page', (_, headers) => {
  expect(isAsked(headers)).toBe(false);
});
