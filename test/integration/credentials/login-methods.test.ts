import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Identity, Passkey, RecoveryCode, Totp, User } from '../../../entities/index.ts';
import {
  canLogIn,
  hasLoginMethod,
  hasOnlyProvenMethods,
  hasProvenMethod,
  proveMethodsOf,
  removeMethods,
} from '../../../server/accounts/credentials/index.ts';
import { type LockedUser, lockUser } from '../../../server/accounts/users/index.ts';
import type { Database, EntityManager } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { LoginMethod, ProviderName } from '../../../server/shared/method-names.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

/** The rules of login methods on the rows of one user. */
let database: Database;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('login-methods') });
  await database.migrate();
});
afterAll(() => database.close());

const HERE = 'h'.repeat(43);
const ELSEWHERE = 'e'.repeat(43);

/** A login method: a capital letter is a proven one. `p` password, `a` and `b` identities, `k` passkey, `t` app, `r` recovery code. */
const insert: Record<string, (em: EntityManager, user: User, proven: boolean, createdAt: number) => unknown> = {
  p(_em, user, proven) {
    user.passwordHash = 'hash';
    user.passwordBrowser = HERE;
    if (proven) user.provePassword();
  },
  a: (em, user, proven, createdAt) => insertIdentity(em, user, { provider: 'acme', browser: HERE, proven, createdAt }),
  b: (em, user, proven, createdAt) =>
    insertIdentity(em, user, { provider: 'bolt', browser: ELSEWHERE, proven, createdAt }),
  k: (em, { id: userId }, proven, createdAt) =>
    em.insert(Passkey, {
      id: randomUUID(),
      userId,
      credentialId: randomUUID(),
      publicKey: '',
      signCount: 0,
      transports: '',
      backupEligible: false,
      backedUp: false,
      aaguid: '',
      name: '',
      proven,
      createdAt,
      lastUsedAt: null,
    }),
  t: (em, { id: userId }, _proven, createdAt) => em.insert(Totp, { userId, secret: '', lastStep: 0, createdAt }),
  r: (em, { id: userId }, _proven, createdAt) =>
    em.insert(RecoveryCode, { id: randomUUID(), userId, codeHash: '', createdAt, usedAt: null }),
};

function insertIdentity(
  em: EntityManager,
  user: User,
  { provider, browser, proven, createdAt }: { provider: string; browser: string; proven: boolean; createdAt: number },
) {
  const identity = Identity.link(user.id, {
    issuer: `https://${provider}.test`,
    subject: user.id,
    provider: provider as ProviderName,
  });
  identity.createdAt = createdAt;
  identity.browser = browser;
  if (proven) identity.prove();
  return em.insert(identity);
}

/** The `n`th method is added `n` seconds after the account. */
const addedAt = (user: User, n: number) => user.createdAt + n * 1000;

/** Acts on a new user with these methods, beside another user with all of them, unproven. */
async function withMethods<T>(methods: string, act: (em: EntityManager, user: LockedUser) => Promise<T>): Promise<T> {
  const make = async (letters: string) => {
    const user = User.register({ email: freshEmail(), name: 'Ada', passwordHash: null });
    await database.transaction(async (em) => {
      await em.persist(user).flush();
      for (const [n, letter] of [...letters].entries())
        await insert[letter.toLowerCase()]?.(em, user, letter !== letter.toLowerCase(), addedAt(user, n + 1));
    });
    return user.id;
  };
  await make('pabktr');
  const id = await make(methods);
  return database.transaction(async (em) => {
    const user = await lockUser(em, { id });
    if (!user) throw new Error('the user is missing');
    return act(em, user);
  });
}

test.each([
  //  methods, has a proven one, all are proven, has one, can log in where only acme is configured
  ['', false, true, false, false],
  ['p', false, false, true, true],
  ['P', true, true, true, true],
  ['a', false, false, true, true],
  ['A', true, true, true, true],
  ['B', true, true, true, false],
  ['AB', true, true, true, true],
  ['k', false, false, true, true],
  ['K', true, true, true, true],
  ['Pa', true, false, true, true],
  ['pK', true, false, true, true],
  ['kB', true, false, true, true],
  // An app and recovery codes give no access.
  ['tr', false, true, false, false],
  ['Ptr', true, true, true, true],
  ['ptr', false, false, true, true],
])('what an account with the methods “%s” has', async (methods, ...expected) => {
  const found = await withMethods(methods, async (em, user) => [
    await hasProvenMethod(em, user),
    await hasOnlyProvenMethods(em, user),
    await hasLoginMethod(em, user),
    await canLogIn(em, user, ['acme' as ProviderName]),
  ]);
  expect(found).toEqual(expected);
});

test.each([
  ['p', HERE, true, []],
  ['p', ELSEWHERE, false, ['password 0']],
  ['a', HERE, true, []],
  ['b', HERE, false, ['bolt 1']],
  ['pab', HERE, true, ['bolt 3']],
  ['pab', ELSEWHERE, true, ['password 0', 'acme 2']],
  ['PA', HERE, false, []],
])(
  'of the methods “%s” a confirmation in the browser %.1s proves some: %s, and leaves %j',
  async (methods, browser, hasProven, unproven) => {
    await withMethods(methods, async (em, user) => {
      const proof = await proveMethodsOf(em, user, browser);
      expect(proof).toEqual({
        hasProven,
        unproven: unproven.map((each) => {
          const [method, n] = each.split(' ');
          return { method, addedAt: addedAt(user, Number(n)) };
        }),
      });
      expect(await hasOnlyProvenMethods(em, user)).toBe(unproven.length === 0);
    });
  },
);

interface Removal {
  methods: string;
  password: boolean;
  /** Of the added methods. */
  remove: LoginMethod[];
  removed: string[];
  kept: string[];
  provider: string;
}

test.each<Removal>([
  { methods: 'Pab', password: false, remove: ['acme'], removed: ['acme'], kept: ['bolt 3'], provider: 'email' },
  {
    methods: 'PAb',
    password: true,
    remove: ['bolt'],
    removed: ['password', 'bolt'],
    kept: ['acme 2'],
    provider: 'acme',
  },
  {
    methods: 'ABk',
    password: true,
    remove: ['acme'],
    removed: ['acme'],
    kept: ['bolt 2', 'passkey 3'],
    provider: 'bolt',
  },
  { methods: 'P', password: true, remove: [], removed: ['password'], kept: [], provider: 'email' },
  // The recovery codes go with the app, and are not listed.
  { methods: 'Ktrr', password: false, remove: ['totp'], removed: ['totp'], kept: ['passkey 1'], provider: 'email' },
  { methods: 'PKtrr', password: false, remove: ['passkey'], removed: ['passkey'], kept: ['totp 3'], provider: 'email' },
] as never)('removes $removed of “$methods”, and keeps $kept', async ({ methods, password, remove, ...expected }) => {
  const left = await withMethods(methods, async (em, user) => {
    const outcome = await removeMethods(em, user, { password, added: ({ method }) => remove.includes(method) });
    const kept = outcome.kept.map((each) => `${each.method} ${(each.addedAt - user.createdAt) / 1000}`);
    expect({ removed: outcome.removed, kept, provider: user.provider }).toEqual(expected);
    expect(user.hasPassword).toBe(/p/i.test(methods) && !password);
    return user.id;
  });
  const rows = await database.query((tables) =>
    tables.selectFrom('recovery_codes').select('id').where('user_id', '=', left).execute(),
  );
  expect(rows).toHaveLength(methods.includes('rr') && !remove.includes('totp' as LoginMethod) ? 2 : 0);
});
