import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { User } from '../../entities/index.ts';
import { isMailedToken } from '../../server/accounts/mailed-tokens.ts';
import { createOneTimeTokens, type OneTimeTokens } from '../../server/accounts/one-time-tokens.ts';
import { parseConfig } from '../../server/config/index.ts';
import type { AllTables, Database } from '../../server/parts/database/contract.ts';
import { openDatabase } from '../../server/parts/database/index.ts';
import { createSecrets, type SecretParts } from '../../server/secrets.ts';
import { temporaryDirectory } from '../rig/custodian.ts';

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
const issue = async (user: User, purpose: 'verify-email' | 'reset-password' = 'reset-password') => {
  const id = await using((tables) => tokens.issue(tables, user.id, purpose));
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

test('a token is derived from its id, its purpose and the secret, and stored as a hash', async () => {
  const { id, token } = await issue(ada);
  expect(isMailedToken(token)).toBe(true);
  expect(tokens.derive('verify-email', id)).not.toBe(token);
  expect(createOneTimeTokens({ database, secrets: createSecrets([OTHER]) }).derive('reset-password', id)).not.toBe(
    token,
  );
  const rows = await using((tables) => tables.selectFrom('one_time_tokens').selectAll().execute());
  expect(rows).toMatchObject([{ token_hash: createHash('sha256').update(token).digest('base64url') }]);
  expect(JSON.stringify(rows)).not.toContain(token);
});

test('is found for its purpose alone, with its user', async () => {
  const { id, token } = await issue(ada);
  await issue(charles);
  const purpose = 'reset-password';
  expect(await find(token)).toEqual({ id, userId: ada.id, email: ada.email, purpose, used: false, expired: false });
  expect(await find(token, 'verify-email')).toBeUndefined();
  expect(await find(`${token.slice(0, -1)}!`)).toBeUndefined();
});

test('a newer one replaces the older of the same user and purpose, and no other', async () => {
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
  await using((tables) => tokens.revoke(tables, ada.id, 'reset-password'));
  expect(await known()).toEqual([undefined, undefined, ...others]);
});

test('a used one is found as that, and derived no more', async () => {
  const [{ id, token }, other] = [await issue(ada), await issue(charles)];
  await using((tables) => tokens.markUsed(tables, id));
  expect(await find(token)).toMatchObject({ used: true });
  expect(await again(id)).toBeUndefined();
  expect(await find(other.token)).toMatchObject({ used: false });
});

test('one is derived again under the secret of its time, as long as that is known', async () => {
  const { id, token } = await issue(ada);
  const under = (...parts: SecretParts) => createOneTimeTokens({ database, secrets: createSecrets(parts) });
  const rotated = under(OTHER, SECRET);
  expect(await using((tables) => rotated.deriveAgain(tables, 'reset-password', id))).toEqual({ token });
  expect(await using((tables) => under(OTHER).deriveAgain(tables, 'reset-password', id))).toBe('foreign');
  const newer = await using((tables) => rotated.issue(tables, ada.id, 'reset-password'));
  expect(rotated.derive('reset-password', newer)).toBe(under(OTHER).derive('reset-password', newer));
  expect(await again(newer)).toBe('foreign');
});

test('a reset token lives for an hour, one to verify for a day', async () => {
  const [reset, verify] = [await issue(ada), await issue(ada, 'verify-email')];
  await age(59 * MINUTE);
  expect(await find(reset.token)).toMatchObject({ expired: false });
  await age(MINUTE);
  expect(await find(reset.token)).toMatchObject({ expired: true });
  expect(await find(verify.token, 'verify-email')).toMatchObject({ expired: false });
  await age(23 * 60 * MINUTE);
  expect(await find(verify.token, 'verify-email')).toMatchObject({ expired: true });
});

test('of all who present one at once one may work with it, until it is released or 15 s have passed', async () => {
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

test('only what has the form of a token is looked up', () => {
  expect(['x'.repeat(43), 'A-z_09'.padEnd(43, 'x')].map(isMailedToken)).toEqual([true, true]);
  for (const text of ['', 'x'.repeat(42), 'x'.repeat(44), `${'x'.repeat(42)}=`])
    expect(isMailedToken(text)).toBe(false);
});
