import { expect } from 'vitest';
import { loggedIn, type Scenario } from './scenario.ts';

/** Every scope. */
export const SCOPES = ['profile:read', 'profile:write', 'uploads:read', 'uploads:write', 'email'];

/** A key as its user gets it. */
export const KEY_PATTERN = /^acct_[0-9A-Za-z]{22}_[0-9A-Za-z]{49}$/;

/** Creates a key in a session. */
export async function createKey({ call }: Scenario, session: string, given: object = {}) {
  const reply = await call('keys.create', { name: 'Backup', scopes: SCOPES, ...given }, { session });
  expect(reply.code).toBeUndefined();
  const { key, secret } = reply.data;
  return { reply, key, secret: secret as string };
}

/** A logged-in user with a key. */
export async function withKey(scenario: Scenario, given: object = {}) {
  const person = await loggedIn(scenario);
  return { ...person, ...(await createKey(scenario, person.session, given)) };
}
