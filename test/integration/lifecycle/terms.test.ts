import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedAccounts, openAccounts, refusedField } from '../rig/accounts.ts';

/** Acceptance of terms, on embedded parts. */
let service: EmbeddedAccounts;
beforeAll(async () => {
  service = await openAccounts({ TERMS_URL: 'https://example.test/terms', TERMS_VERSION: '2' });
});
afterAll(() => service.close());

test('the current terms are accepted once', async () => {
  const { user, session } = await service.loggedIn();
  const { accept } = service.accounts.lifecycle.terms;
  await expect(accept(session, '1')).rejects.toEqual(refusedField('version', 'terms_changed'));
  for (let i = 0; i < 2; i++) await accept(session, '2');
  expect(await service.rowsOf('consents', user)).toMatchObject([{ version: '2' }]);
});
