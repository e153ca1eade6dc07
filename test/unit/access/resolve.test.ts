import { expect, test, vi } from 'vitest';
import { createAccess, type TokenResolver } from '../../../server/access/index.ts';
import { newKey } from '../../../server/access/key-format.ts';
import { createCustomFields } from '../../../server/accounts/users/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import type { Proof } from '../../../server/lib/credential.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

/** Which bearer credentials are looked up, and where. */

const user = { id: 'user_1' };
const token = {
  userId: user.id,
  scopes: ['email', 'openid', 'profile:read'],
  applicationId: 'shop',
  grantId: 'grant',
  issuedAt: 1000,
  expiresAt: 301_000,
};

const setUp = async (resolveToken?: TokenResolver) => {
  const database = await openDatabase(parseConfig({ DATA_DIR: temporaryDirectory('access'), LOG_LEVEL: 'silent' }));
  await database.migrate();
  const query = vi.spyOn(database, 'query');
  const find = vi.fn(async (id: string) => (id === user.id ? (user as never) : undefined));
  const access = createAccess({
    database,
    users: { find, customFields: createCustomFields() },
    outbox: { wake: () => undefined },
    record: async () => undefined,
    resolveToken,
  });
  const resolve = (token: string, proof?: Proof) => access.resolve({ token, ...(proof && { proof }) });
  return { resolve, query, close: () => database.close() };
};

test('a key with a wrong checksum is refused without a query, a well-formed one after one query', async () => {
  const { resolve, query, close } = await setUp();
  const { key } = newKey();
  for (const wrong of [`${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`, 'acct_', `${key}x`, key.slice(0, 40)]) {
    expect(await resolve(wrong)).toBeNull();
  }
  expect(query).not.toHaveBeenCalled();
  expect(await resolve(key)).toBeNull();
  expect(query).toHaveBeenCalledTimes(1);
  await close();
});

test('only values that are no keys go to the applications, and only known scopes come back', async () => {
  const resolveToken = vi.fn<TokenResolver>(async (text) => (text === 'good' ? token : undefined));
  const { resolve, query, close } = await setUp(resolveToken);
  expect(await resolve('good')).toEqual({
    id: undefined,
    user,
    createdAt: 1000,
    expiresAt: 301_000,
    fresh: false,
    scopes: ['email', 'profile:read'],
    credential: { kind: 'token', applicationId: 'shop', grantId: 'grant' },
  });
  expect(await resolve('bad')).toBeNull();
  await resolve(newKey().key);
  await resolve('acct_x');
  const proof = { jwt: 'x.y.z', method: 'GET', url: 'https://accounts.example.com/api/profile' };
  await resolve('good', proof);
  expect(await resolve(newKey().key, proof)).toBeNull();
  expect(resolveToken.mock.calls).toEqual([
    ['good', undefined],
    ['bad', undefined],
    ['good', proof],
  ]);
  expect(query).toHaveBeenCalledTimes(1);
  await close();
});

test('without applications, and for a user who is gone, a token is refused', async () => {
  const without = await setUp();
  expect(await without.resolve('good')).toBeNull();
  await without.close();
  const { resolve, close } = await setUp(async () => ({ ...token, userId: 'user_2' }));
  expect(await resolve('good')).toBeNull();
  await close();
});
