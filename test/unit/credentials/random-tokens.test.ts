import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { User } from '../../../entities/index.ts';
import { createOneTimeTokens } from '../../../server/accounts/mail/tokens/one-time.ts';
import { type LockedUser, lockUser } from '../../../server/accounts/users/index.ts';
import { isToken } from '../../../server/lib/random-token.ts';
import { type AllTables, type Database, sql } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createSecrets } from '../../../server/secrets.ts';
import { cases } from '../../rig/client/random.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

const dataDir = temporaryDirectory('tokens');
const users = ['ada', 'grace'].map((name) => User.register({ email: `${name}@example.test`, name, passwordHash: 'x' }));
const purposes = ['verify-email', 'reset-password'] as const;
const SECOND = 1000;
const HOUR = 3600 * SECOND;
const lives = { 'verify-email': 24 * HOUR, 'reset-password': HOUR };
let database: Database;

beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir });
  await database.migrate();
  await database.transaction(async (em) => {
    await em.insertMany(users);
  });
});
afterAll(async () => {
  await database.close();
});

const underLock = <T>(id: string, work: (tables: AllTables, user: LockedUser) => Promise<T>) =>
  database.transaction(async (em, tables) => work(tables, (await lockUser(em, { id })) as LockedUser));

const secret = fc.string({ minLength: 32, maxLength: 40 });

test('tokens have one format, differ by id, purpose and secret, and reveal none of them', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.uuid(), { minLength: 2, maxLength: 5 }),
      fc.uniqueArray(secret, { minLength: 2, maxLength: 3 }),
      (ids, secrets) => {
        const tokens = secrets.flatMap((secret) => {
          const { derive } = createOneTimeTokens({ database, secrets: createSecrets([secret]) });
          return ids.flatMap((id) => purposes.map((purpose) => derive(purpose, id)));
        });
        expect(new Set(tokens).size).toBe(secrets.length * ids.length * purposes.length);
        for (const token of tokens) {
          expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
          expect(isToken(token)).toBe(true);
        }
      },
    ),
    cases(50),
  );
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.base64String(), fc.constantFrom('a'.repeat(42), 'a'.repeat(44), `${'a'.repeat(43)}\n`)),
      (text) => {
        expect(isToken(text)).toBe(/^[\w-]+$/.test(text) && text.length === 43 && !text.includes('\n'));
      },
    ),
    cases(100),
  );
});

interface Known {
  user: number;
  purpose: (typeof purposes)[number];
  id: string;
  age: number;
  used: boolean;
  /** The time since its reservation. */
  reserved: number | undefined;
  isReplaced: boolean;
}

const one = fc.record({ user: fc.nat(1), purpose: fc.constantFrom(...purposes), before: fc.constantFrom(0, 0, 0, 1) });
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ act: fc.constant('issue' as const), one }) },
  { weight: 6, arbitrary: fc.record({ act: fc.constant('reserve' as const), one }) },
  fc.record({ act: fc.constantFrom('release' as const, 'use' as const, 'revoke' as const), one }),
  {
    weight: 5,
    arbitrary: fc.record({
      act: fc.constant('wait' as const),
      ms: fc.constantFrom(6 * SECOND, 6 * SECOND, 6 * SECOND, HOUR / 2, 13 * HOUR),
    }),
  },
);

test('only the newest token of a purpose is valid until it expires, reserved by one caller for 15 seconds, and stored as a hash', async () => {
  const tokens = createOneTimeTokens({ database, secrets: createSecrets(['x'.repeat(32)]) });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30, size: 'max' }), async (steps) => {
      await database.write((tables) => tables.deleteFrom('one_time_tokens').execute());
      const issued: Known[] = [];
      const of = ({ user, purpose, before }: { user: number; purpose: string; before: number }) =>
        issued.filter((token) => token.user === user && token.purpose === purpose).at(-1 - before);
      for (const each of steps) {
        if (each.act === 'wait') {
          // As if that much later: the database has its own clock.
          await database.write((tables) =>
            tables
              .updateTable('one_time_tokens')
              .set({ expires_at: sql`expires_at - ${each.ms}`, reserved_until: sql`reserved_until - ${each.ms}` })
              .execute(),
          );
          for (const token of issued) {
            token.age += each.ms;
            if (token.reserved !== undefined) token.reserved += each.ms;
          }
          continue;
        }
        const { user, purpose } = each.one;
        const userId = users[user]?.id ?? '';
        const token = of(each.one);
        if (each.act === 'issue' || each.act === 'revoke') {
          for (const other of issued) if (other.user === user && other.purpose === purpose) other.isReplaced = true;
        }
        if (each.act === 'issue') {
          const id = await underLock(userId, (tables, user) => tokens.issue(tables, user, purpose));
          issued.push({ user, purpose, id, age: 0, used: false, reserved: undefined, isReplaced: false });
        } else if (each.act === 'revoke') {
          await underLock(userId, (tables, user) => tokens.revoke(tables, user, purpose));
        } else if (token && each.act === 'reserve') {
          const isFree =
            !token.isReplaced && !token.used && (token.reserved ?? Number.POSITIVE_INFINITY) >= 15 * SECOND;
          expect(await database.write((tables) => tokens.reserve(tables, token.id))).toBe(isFree);
          if (isFree) token.reserved = 0;
        } else if (token && each.act === 'release') {
          await database.write((tables) => tokens.release(tables, token.id));
          token.reserved = undefined;
        } else if (token) {
          await database.transaction((_em, tables) => tokens.markUsed(tables, token.id));
          token.used = true;
        }
      }
      for (const { user, purpose, id, age, used, isReplaced } of issued) {
        const { id: userId, email } = users[user] as User;
        const token = tokens.derive(purpose, id);
        const expected = { id, userId, email, purpose, used, expired: age >= lives[purpose] };
        for (const tried of purposes) {
          const found = await database.query((tables) => tokens.find(tables, [tried], token));
          if (tried === purpose && !isReplaced) expect(found).toMatchObject(expected);
          else expect(found).toBeUndefined();
        }
        expect(await database.query((tables) => tokens.deriveAgain(tables, purpose, id))).toEqual(
          isReplaced || used ? undefined : { token },
        );
      }
      const rows = await database.query((tables) => tables.selectFrom('one_time_tokens').selectAll().execute());
      const valid = issued.filter(({ isReplaced }) => !isReplaced).map(({ purpose, id }) => tokens.derive(purpose, id));
      const hashes = valid.map((token) => createHash('sha256').update(token).digest('base64url'));
      expect(rows.map((row) => row.token_hash).sort()).toEqual(hashes.sort());
      for (const token of valid) expect(JSON.stringify(rows)).not.toContain(token);
    }),
    cases(30),
  );
});
