import { describe, expect, test } from 'vitest';
import * as fields from '../../../routers/schemas/fields.ts';
import { isUserId } from '../../../routers/users/users.ts';
import { isDeviceCookie } from '../../../server/accounts/sessions/known-devices.ts';
import { isMailAddress, isName, isWebAddress } from '../../../server/accounts/users/text-rules.ts';
import { tokenIn } from '../../../server/http/authorization.ts';
import { clientAddress } from '../../../server/http/client-address.ts';
import { readCookie } from '../../../server/http/cookies/cookie.ts';
import { readSessionCookie } from '../../../server/http/cookies/session.ts';
import { isToken } from '../../../server/lib/random-token.ts';
import { loggedError } from '../../../server/telemetry/log.ts';

const LENGTH = 100_000;
const LIMIT_MS = 5;
const RUNS = 7;

/** Texts that make patterns backtrack, each of 100 kB. */
const worst = [
  ...['a', 'a@', '@', '.', 'a.', '-', 'a-.', ' ', ',', ':', ';', '/', '1', '1.', ']', ']:', '"', "'", '=', '%40'],
  ...['A1!a', '\u200b', '\u2800', '\ud83d\ude00', '\ud800', '\u0301', '\0', '\n', '\n    at '],
  ...["Duplicate entry '", '" is not valid JSO', 'auth_session=', 'auth_session=;', 'http://', 'user_0'],
].map((piece) => piece.repeat(Math.ceil(LENGTH / piece.length)).slice(0, LENGTH));
const starts = ['', 'a@', 'https://', '[', 'Bearer ', 'Bearer a', 'auth_session=', '1.2.3.4:'];
const ends = ['', '!', ' ', '@', '\u0001'];
const texts = worst.flatMap((text) => starts.flatMap((start) => ends.map((end) => start + text + end)));

/** Whether one of several runs stays within the limit, because garbage collection and compilation use this thread's CPU too. */
const isCheap = (run: () => unknown): boolean =>
  Array.from({ length: RUNS }).some(() => {
    const before = process.threadCpuUsage();
    run();
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000 < LIMIT_MS;
  });

// checks: 52
describe('100 kB of untrusted text cost under 5 ms of CPU, whatever it contains', () => {
  test.each<[string, (text: string) => unknown]>([
    ['a message in the log', (text) => loggedError(new Error(text))],
    ['a thrown text in the log', (text) => loggedError(text)],
    ['the cause of an error in the log', (text) => loggedError(new Error('', { cause: new Error(text) }))],
    ['a mail address', isMailAddress],
    ['a web address', isWebAddress],
    ['a name at the identity provider', isName],
    ['the field name', (text) => fields.name.safeParse(text)],
    ['the field bio', (text) => fields.profile.bio.safeParse(text)],
    ['the field location', (text) => fields.profile.location.safeParse(text)],
    ['the field email', (text) => fields.email.safeParse(text)],
    ['the field website', (text) => fields.profile.website.safeParse(text)],
    ['a new password', (text) => fields.newPassword.safeParse(text)],
    ['a random token', isToken],
    ['the address of a reset', (text) => fields.mailedEmail.safeParse(text)],
    ['X-Forwarded-For', (text) => clientAddress('127.0.0.1', text, 1)],
    ['a cookie', (text) => readCookie(text, 'auth_session')],
    ['the session cookie', readSessionCookie],
    ['the cookie of a device', isDeviceCookie],
    ['a service token', tokenIn],
    ['a user id', isUserId],
  ])('%s', (_, read) => {
    const costly = texts.find((text) => !isCheap(() => read(text)));
    expect(costly && `${costly.slice(0, 20)} … ${costly.slice(-10)}`).toBeUndefined();
  });
});

describe('the log', () => {
  test('removes emails and database values from messages', () => {
    const { message } = loggedError(
      new Error(`mail to <ada@example.test>, ada%40example.test: Duplicate entry 'ada' for key 'email'`),
    );
    expect(message).toBe("mail to <[address]>, [address]: Duplicate entry '…' for key 'email'");
    expect(loggedError(new Error('at /srv/node_modules/@koa/cors/index.js')).message).toContain('@koa/cors');
  });

  test('cuts a message to 1 kB, in the stack too', () => {
    const { message, stack } = loggedError(new Error('x y'.repeat(1000)));
    expect(message).toHaveLength(1024);
    expect(stack).toContain('untrusted-text.test.ts');
    expect(stack?.split('\n')[0]).toHaveLength('Error: '.length + 1024);
  });

  test('contains nothing of an error beside its message', () => {
    const causes = [
      new URLSearchParams({ code: 'the-code', state: 'the-state' }),
      { parameters: { code: 'the-code' } },
      ['the-code', 'the-state'],
      new Map([['code', 'the-code']]),
      new Response('the-code', { headers: { state: 'the-state' } }),
      Object.assign(new Error('refused'), { code: 'REFUSED', error_description: 'the-code', request: 'the-state' }),
    ];
    for (const cause of causes) {
      expect(JSON.stringify(loggedError(new Error('failed', { cause })))).not.toMatch(/the-(?:code|state)/);
    }
    const parsing = () => JSON.parse('the-code');
    expect(parsing).toThrow();
    try {
      parsing();
    } catch (error) {
      expect(JSON.stringify(loggedError(error))).not.toContain('the-code');
    }
  });
});
