import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { createLoginFlows, newState } from '../../server/accounts/login-flows.ts';
import type { KeyValueStore } from '../../server/parts/key-value/contract.ts';

/** Flows of this release and of the one before, which runs beside it during an upgrade and knows logins only. */
const secrets = { redirectUri: 'https://x.test/auth/acme/callback', nonce: 'n', codeVerifier: 'v' };
const owner = { userId: 'user_1', sessionId: 's', epoch: 0, browser: 'b' };

function memory() {
  const entries = new Map<string, string>();
  const store = {
    set: async (key: string, value: string) => Boolean(entries.set(key, value)),
    async take(key: string) {
      const value = entries.get(key) ?? null;
      entries.delete(key);
      return value;
    },
  } as unknown as KeyValueStore;
  return { entries, flows: createLoginFlows(store) };
}

test('a flow that the release before has begun ends as a login', async () => {
  const { entries, flows } = memory();
  const state = newState();
  const key = `login-flow:${createHash('sha256').update(state).digest('base64url')}`;
  entries.set(key, JSON.stringify({ ...secrets, provider: 'acme' }));
  expect(await flows.take(state, 'acme')).toMatchObject({ ...secrets, purpose: 'login' });
});

test('the release before takes a login of this one, and no other flow', async () => {
  const { entries, flows } = memory();
  for (const purpose of ['login', 'link', 'reauthenticate'] as const) {
    await flows.open(newState(), 'acme', { ...secrets, purpose, owner });
  }
  // It compares the provider that is stored with the one whose callback it is.
  const stored = [...entries.values()].map((value) => JSON.parse(value).provider);
  expect(stored).toEqual(['acme', 'link:acme', 'reauthenticate:acme']);
});

test.each(['login', 'link', 'reauthenticate'] as const)(
  'a flow for %s ends once, at its own provider',
  async (purpose) => {
    const { flows } = memory();
    const [state, other] = [newState(), newState()];
    for (const begun of [state, other])
      await flows.open(begun, 'acme', { ...secrets, purpose, owner, page: '/dashboard' });
    expect(await flows.take(state, 'acme')).toEqual({
      ...secrets,
      purpose,
      owner,
      page: '/dashboard',
      begunAt: expect.any(Number),
    });
    await expect(flows.take(state, 'acme')).rejects.toMatchObject({ code: 'INVALID_STATE' });
    await expect(flows.take(other, 'work')).rejects.toMatchObject({ code: 'INVALID_STATE' });
    await expect(flows.take(other, 'acme')).rejects.toMatchObject({ code: 'INVALID_STATE' });
  },
);
