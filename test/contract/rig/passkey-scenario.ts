import { expect } from 'vitest';
import { Authenticator, type Lies } from '../../rig/client/authenticator.ts';
import type { Stack } from '../../rig/stack.ts';
import { until } from '../../rig/until.ts';
import type { Call, CallOptions } from './callers.ts';
import { browserIn, eventsOf, loggedIn, sessionIn } from './scenario.ts';

/** Users with passkeys of software authenticators. */

interface Scenario {
  stack: Stack;
  call: Call;
}

/** Invalid responses to any challenge. */
export const lies: [what: string, Lies][] = [
  ['another origin', { origin: 'https://evil.test' }],
  ['an origin that begins as ours', { origin: 'http://localhost.evil.test' }],
  ['no origin', { origin: '' }],
  ['another RP id', { rpId: 'evil.test' }],
  ['a frame in a page of another site', { crossOrigin: true }],
  ['no user verification', { userVerified: false }],
  ['nobody present', { userPresent: false }],
  ['a challenge that was not given', { challenge: 'A'.repeat(43) }],
  ['an empty challenge', { challenge: '' }],
];

export const authenticatorFor = ({ appUrl }: Stack, options?: { signCount?: number }) =>
  new Authenticator(new URL(appUrl).origin, options);

/** The options of a registration, and the browser cookie. */
export async function beginRegistration(call: Call, session: string) {
  const reply = await call('passkeys.beginRegistration', undefined, { session });
  expect(reply).toMatchObject({ code: undefined, status: 200 });
  return { options: reply.data, browser: browserIn(reply) ?? '' };
}

/** Adds a passkey. Returns its entry in the list. */
export async function addPasskey(call: Call, session: string, authenticator: Authenticator, name?: string) {
  const { options, browser } = await beginRegistration(call, session);
  const input = { ...authenticator.register(options), ...(name && { name }) };
  const reply = await call('passkeys.finishRegistration', input, { session, browser });
  expect(reply).toMatchObject({ code: undefined, data: { success: true } });
  return reply.data.passkey as { id: string; name: string };
}

/** A user with a password, a session and a passkey. */
export async function withPasskey({ stack, call }: Scenario, options?: { signCount?: number }) {
  const person = await loggedIn({ stack, call });
  const authenticator = authenticatorFor(stack, options);
  return { ...person, authenticator, passkey: await addPasskey(call, person.session, authenticator) };
}

/** The options of a login, and the browser cookie. */
export async function beginLogin(call: Call) {
  const reply = await call('auth.beginPasskey');
  expect(reply).toMatchObject({ code: undefined, status: 200 });
  return { options: reply.data, browser: browserIn(reply) ?? '' };
}

/** A whole login by passkey. */
export async function tryPasskey(call: Call, authenticator: Authenticator, lies: Lies = {}, given: CallOptions = {}) {
  const { options, browser } = await beginLogin(call);
  return call('auth.finishPasskey', authenticator.assert(options, lies), { browser, ...given });
}

export async function logInByPasskey(call: Call, authenticator: Authenticator): Promise<string> {
  const reply = await tryPasskey(call, authenticator);
  expect(reply).toMatchObject({ code: undefined, status: 200 });
  return sessionIn(reply) ?? '';
}

export const passkeysOf = async (call: Call, session: string) =>
  (await call('passkeys.list', undefined, { session })).data.data as {
    id: string;
    name: string;
    createdAt: number;
    lastUsedAt: number | null;
  }[];

export const passkeyRows = ({ database }: Stack, userId: string) =>
  database<Record<string, unknown>>('select * from passkeys where user_id = ? order by id', [userId]);

/** As if the user had no password. */
export const forgetPassword = ({ database }: Stack, userId: string) =>
  database('update users set password_hash = null, password_proven = 0 where id = ?', [userId]);

export const sessionsOf = ({ database }: Stack, userId: string) =>
  database<{ method: string }>('select method from sessions where user_id = ? order by id', [userId]);

/** The refused logins, once this many are recorded: each is recorded after its answer. */
export const refusalsOf = (stack: Stack, userId: string, count: number) =>
  until(async () => {
    const refusals = await eventsOf(stack, userId, 'login-refused');
    return refusals.length >= count && refusals;
  });
