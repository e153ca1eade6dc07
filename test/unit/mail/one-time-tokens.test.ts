import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { User } from '../../../entities/index.ts';
import { createOneTimeTokens, type OneTimeTokens } from '../../../server/accounts/mail/tokens/one-time.ts';
import { type LockedUser, lockUser } from '../../../server/accounts/users/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import { isToken } from '../../../server/lib/random-token.ts';
import type { AllTables, Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createSecrets, type SecretParts } from '../../../server/secrets.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

const MINUTE = 60_000;
const [SECRET, OTHER] = ['x'.repeat(32), 'y'.repeat(32)] as const;
const dataDir = temporaryDirectory('tokens');
const [ada, charles] = ['ada', 'charles'].map((name) =>
  User.register({ email: `${name}@example.test`, name, passwordHash: 'x' }),
) as [User, User];
let database: Database;
let tokens: OneTimeTokens;

beforeAll(async () => {
  database = await openDatabase(parseConfig({ DATA_DIR: dataDir, LOG_LEVEL: 'silent' }));
  await database.migrate();
  await database.transaction(async (em) => {
    await em.insertMany([ada, charles]);
  });
  tokens = createOneTimeTokens({ database, secrets: createSecrets([SECRET]) });
});
afterAll(async () => {
  await database.close();
});
beforeEach(() => using((tables) => tables.deleteFrom('one_time_tokens').execute()));

const using = <T>(work: (tables: AllTables) => Promise<T>) => database.transaction((_em, tables) => work(tables));
const underLock = <T>({ id }: User, work: (tables: AllTables, user: LockedUser) => Promise<T>) =>
  database.transaction(async (em, tables) => work(tables, (await lockUser(em, { id })) as LockedUser));
const issueBy = (by: OneTimeTokens, user: User, purpose: 'verify-email' | 'reset-password') =>
  underLock(user, (tables, locked) => by.issue(tables, locked, purpose));
const issue = async (user: User, purpose: 'verify-email' | 'reset-password' = 'reset-password') => {
  const id = await issueBy(tokens, user, purpose);
  return { id, token: tokens.derive(purpose, id) };
};
const find = (token: string, purpose: 'verify-email' | 'reset-password' = 'reset-password') =>
  using((tables) => tokens.find(tables, [purpose], token));
const again = (id: string, purpose: 'verify-email' | 'reset-password' = 'reset-password') =>
  using((tables) => tokens.deriveAgain(tables, purpose, id));
const age = (ms: number) =>
  using((tables) =>
    tables
      .updateTable('one_time_tokens')
      .set((eb) => ({ expires_at: eb('expires_at', '-', ms) }))
      .execute(),
  );

test('a token is derived from its id, purpose and secret, and stored as a hash', async () => {
  const { id, token } = await issue(ada);
  expect(isToken(token)).toBe(true);
  expect(tokens.derive('verify-email', id)).not.toBe(token);
  expect(createOneTimeTokens({ database, secrets: createSecrets([OTHER]) }).derive('reset-password', id)).not.toBe(
    token,
  );
  const rows = await using((tables) => tables.selectFrom('one_time_tokens').selectAll().execute());
  expect(rows).toMatchObject([{ token_hash: createHash('sha256').update(token).digest('base64url') }]);
  expect(JSON.stringify(rows)).not.toContain(token);
});

test('is found for its own purpose, with its user', async () => {
  const { id, token } = await issue(ada);
  await issue(charles);
  const purpose = 'reset-password';
  const state = { used: false, expired: false, disownedAt: null, coversFrom: expect.any(Number), returnTo: null };
  expect(await find(token)).toEqual({ id, userId: ada.id, email: ada.email, purpose, ...state });
  expect(await find(token, 'verify-email')).toBeUndefined();
  expect(await find(`${token.slice(0, -1)}!`)).toBeUndefined();
});

test('a newer one replaces those of the same user and purpose', async () => {
  const [older, ofCharles, toVerify] = [await issue(ada), await issue(charles), await issue(ada, 'verify-email')];
  const newer = await issue(ada);
  expect(await find(older.token)).toBeUndefined();
  const known = async () => [
    await again(older.id),
    await again(newer.id),
    await again(ofCharles.id),
    await again(toVerify.id, 'verify-email'),
  ];
  const [ofNewer, ...others] = [newer, ofCharles, toVerify].map(({ token }) => ({ token }));
  expect(await known()).toEqual([undefined, ofNewer, ...others]);
  await underLock(ada, (tables, user) => tokens.revoke(tables, user, 'reset-password'));
  expect(await known()).toEqual([undefined, undefined, ...others]);
});

test('a used one is reported as used, and not derived again', async () => {
  const [{ id, token }, other] = [await issue(ada), await issue(charles)];
  await using((tables) => tokens.markUsed(tables, id));
  expect(await find(token)).toMatchObject({ used: true });
  expect(await again(id)).toBeUndefined();
  expect(await find(other.token)).toMatchObject({ used: false });
});

test('one is derived under the secret of its time, while that secret is known', async () => {
  const { id, token } = await issue(ada);
  const under = (...parts: SecretParts) => createOneTimeTokens({ database, secrets: createSecrets(parts) });
  const rotated = under(OTHER, SECRET);
  expect(await using((tables) => rotated.deriveAgain(tables, 'reset-password', id))).toEqual({ token });
  expect(await using((tables) => under(OTHER).deriveAgain(tables, 'reset-password', id))).toBe('otherKey');
  const newer = await issueBy(rotated, ada, 'reset-password');
  expect(rotated.derive('reset-password', newer)).toBe(under(OTHER).derive('reset-password', newer));
  expect(await again(newer)).toBe('otherKey');
});

test('a reset token is valid for an hour, a verification token for a day', async () => {
  const [reset, verify] = [await issue(ada), await issue(ada, 'verify-email')];
  await age(59 * MINUTE);
  expect(await find(reset.token)).toMatchObject({ expired: false });
  await age(MINUTE);
  expect(await find(reset.token)).toMatchObject({ expired: true });
  expect(await find(verify.token, 'verify-email')).toMatchObject({ expired: false });
  await age(23 * 60 * MINUTE);
  expect(await find(verify.token, 'verify-email')).toMatchObject({ expired: true });
});

test('of concurrent uses one reserves the token, until it is released or 15 s have passed', async () => {
  const [{ id }, other] = [await issue(ada), await issue(charles)];
  const reserve = (which = id) => using((tables) => tokens.reserve(tables, which));
  expect(await Promise.all([reserve(), reserve(), reserve()])).toEqual([true, false, false]);
  expect(await reserve(other.id)).toBe(true);
  await using((tables) => tokens.release(tables, id));
  const before = Date.now();
  expect([await reserve(), await reserve(), await reserve(other.id)]).toEqual([true, false, false]);
  const after = Date.now();
  const [row] = await using((tables) =>
    tables.selectFrom('one_time_tokens').select('reserved_until').where('id', '=', id).execute(),
  );
  expect(Number(row?.reserved_until) - 15_000).toBeGreaterThanOrEqual(before - 1);
  expect(Number(row?.reserved_until) - 15_000).toBeLessThanOrEqual(after + 1);
  await using((tables) => tables.updateTable('one_time_tokens').set({ reserved_until: 1 }).execute());
  expect(await reserve()).toBe(true);
  await using((tables) => tokens.release(tables, id));
  await using((tables) => tokens.markUsed(tables, id));
  expect(await reserve()).toBe(false);
});

test('a shared token whose secret was removed follows from the current one at the next act, for waiting mails too', async () => {
  const renewedBy = (by: OneTimeTokens) =>
    underLock(ada, (tables, locked) => by.issue(tables, locked, 'new-device', { coversFrom: 1 }));
  const [known, after] = [[OTHER, SECRET], [OTHER]].map((parts) =>
    createOneTimeTokens({ database, secrets: createSecrets(parts as unknown as SecretParts) }),
  ) as [OneTimeTokens, OneTimeTokens];
  const derived = (by: OneTimeTokens, id: string) => using((tables) => by.deriveAgain(tables, 'new-device', id));
  const id = await renewedBy(tokens);
  const former = { token: tokens.derive('new-device', id) };
  // Links that were mailed work for as long as the former secret is known.
  expect(await renewedBy(known)).toBe(id);
  expect(await derived(known, id)).toEqual(former);
  expect(await derived(after, id)).toBe('otherKey');
  expect(await renewedBy(after)).toBe(id);
  expect(await derived(after, id)).toEqual({ token: after.derive('new-device', id) });
});
