import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { createLoginFlows } from '../../../server/accounts/providers/flows.ts';
import { hashOf, newToken } from '../../../server/lib/random-token.ts';
import type { TextStore } from '../../../server/parts/key-value/contract.ts';
import { withNamedValues } from '../../../server/parts/key-value/named-values.ts';
import type { ProviderName } from '../../../server/shared/method-names.ts';

/** Flows of this release and of the previous one, which runs beside it during an upgrade and knows logins only. */
const secrets = { redirectUri: 'https://x.test/auth/acme/callback', nonce: 'n', codeVerifier: 'v' };
const owner = { userId: 'user_1', sessionId: 's', epoch: 0 };
const browser = newToken();
const acme = 'acme' as ProviderName;
const here = { provider: acme, browser };

function memory() {
  const entries = new Map<string, string>();
  const store = {
    set: async (key: string, value: string) => Boolean(entries.set(key, value)),
    async take(key: string) {
      const value = entries.get(key) ?? null;
      entries.delete(key);
      return value;
    },
  } as unknown as TextStore;
  return { entries, flows: createLoginFlows(withNamedValues(store)) };
}

test('a flow of the previous release ends as a login without a known requester', async () => {
  const { entries, flows } = memory();
  const state = newToken();
  const key = `login-flow:${createHash('sha256').update(state).digest('base64url')}`;
  entries.set(key, JSON.stringify({ ...secrets, provider: 'acme' }));
  expect(await flows.take(state, here)).toEqual({ ...secrets, purpose: 'login', begunAt: 0, asker: undefined });
});

test('the previous release accepts a login of this one, and no other flow', async () => {
  const { entries, flows } = memory();
  for (const purpose of ['login', 'link', 'reauthenticate'] as const) {
    await flows.open(newToken(), acme, { ...secrets, purpose, owner, browser, isAskedFor: true });
  }
  // It compares the stored provider with that of the callback.
  const stored = [...entries.values()].map((value) => JSON.parse(value).provider);
  expect(stored).toEqual(['acme', 'link:acme', 'reauthenticate:acme']);
});

test.each(['login', 'link', 'reauthenticate'] as const)(
  'a flow for %s ends once, at its own provider and in its own browser',
  async (purpose) => {
    const { flows } = memory();
    const [state, other, third] = [newToken(), newToken(), newToken()];
    const flow = { ...secrets, purpose, owner, page: '/dashboard' };
    for (const begun of [state, other, third]) await flows.open(begun, acme, { ...flow, browser, isAskedFor: true });
    const taken = { ...flow, begunAt: expect.any(Number), asker: hashOf(browser) };
    expect(await flows.take(state, here)).toEqual(taken);
    const invalid = { code: 'INVALID_STATE' };
    await expect(flows.take(state, here)).rejects.toMatchObject(invalid);
    await expect(flows.take(other, { ...here, provider: 'work' as ProviderName })).rejects.toMatchObject(invalid);
    await expect(flows.take(other, here)).rejects.toMatchObject(invalid);
    await expect(flows.take(third, { ...here, browser: newToken() })).rejects.toMatchObject(invalid);
    await expect(flows.take(third, here)).rejects.toMatchObject(invalid);
  },
);

test.each([
  ['a purpose of the next release', { purpose: 'sign', provider: 'sign:acme' }],
  ['an owner without a session', { purpose: 'link', provider: 'link:acme', owner: { userId: 'user_1', epoch: 0 } }],
  ['a page that is no text', { page: ['/dashboard'] }],
])('a flow with %s is no flow', async (_, fields) => {
  const { entries, flows } = memory();
  const state = newToken();
  const stored = { ...secrets, provider: 'acme', ...fields };
  const key = `login-flow:${hashOf(state)}`;
  entries.set(key, JSON.stringify({ ...stored, key }));
  await expect(flows.take(state, here)).rejects.toMatchObject({ code: 'INVALID_STATE' });
});

test('a flow that no own page started has no requester', async () => {
  const { flows } = memory();
  const state = newToken();
  await flows.open(state, acme, { ...secrets, purpose: 'login', browser, isAskedFor: false });
  expect((await flows.take(state, here)).asker).toBeUndefined();
});
