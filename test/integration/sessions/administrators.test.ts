import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Role, User } from '../../../entities/index.ts';
import { asAdministrator } from '../../../server/accounts/sessions/administrators.ts';
import type { Session } from '../../../server/accounts/sessions/sessions.ts';
import { accountOf } from '../../../server/accounts/users/users.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

let database: Database;

beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('administrators') });
  await database.migrate();
});
afterAll(async () => {
  await database.close();
});

/** The session of an administrator as validated, and the user's state at the time of the change. */
async function sessionOf(now: { role: Role; emailVerified?: boolean }): Promise<Session> {
  const user = User.register({ email: `${crypto.randomUUID()}@example.test`, name: 'Ada', passwordHash: 'x' });
  user.verifyEmail();
  const id = crypto.randomUUID();
  const account = { ...accountOf(user), role: 'admin' as const };
  Object.assign(user, now);
  await database.transaction(async (em, tables) => {
    await em.insert(user);
    await tables
      .insertInto('sessions')
      .values({
        id,
        user_id: user.id,
        epoch: 0,
        method: 'password',
        address: '',
        device: '',
        created_at: 1,
        authenticated_at: 1,
        last_used_at: 1,
        expires_at: 1e15,
      })
      .execute();
  });
  return { id, user: account, createdAt: 1, expiresAt: 1e15, fresh: false };
}

test.each<[Role, boolean, string]>([
  ['admin', true, 'made'],
  ['user', true, 'FORBIDDEN'],
  ['admin', false, 'FORBIDDEN'],
])('a change by an administrator who has become a %s (verified: %s) is %s', async (role, emailVerified, outcome) => {
  const session = await sessionOf({ role, emailVerified });
  const made = asAdministrator({ database, outbox: { wake: () => undefined } as never }, session, async () => 'made');
  expect(await made.catch(({ code }) => code)).toBe(outcome);
});
