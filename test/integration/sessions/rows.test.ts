import { v7 as uuidv7 } from 'uuid';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { User } from '../../entities/index.ts';
import { createSessionRows, type SessionRows } from '../../server/accounts/session-rows.ts';
import { accountOf } from '../../server/accounts/users.ts';
import { backgroundJob } from '../../server/activity/caller.ts';
import { createActivity } from '../../server/activity/index.ts';
import type { Database } from '../../server/parts/database/contract.ts';
import { openDatabase } from '../../server/parts/database/index.ts';
import { stackNames } from '../contract/scenario.ts';
import { temporaryDirectory } from '../rig/custodian.ts';
import { createDatabase, dropDatabase } from '../rig/mysql.ts';

const LIFE_MS = 60_000;
const HOUR_MS = 3_600_000;

describe.each(stackNames)('on %s parts', (kind) => {
  const dataDir = temporaryDirectory('session-rows');
  const [ada, bob] = ['ada', 'bob'].map((name) =>
    User.register({ email: `${name}@example.test`, name, passwordHash: 'x' }),
  ) as [User, User];
  let databaseUrl: string | undefined;
  let database: Database;
  let rows: SessionRows;

  beforeAll(async () => {
    databaseUrl = kind === 'real' ? await createDatabase(inject('mysqlUrl')) : undefined;
    database = await openDatabase({ databaseUrl, dataDir });
    await database.migrate();
    await database.transaction(async (em) => {
      for (const user of [ada, bob]) await em.insert(user);
    });
    rows = createSessionRows(database, createActivity(database, { keptDays: 1 }));
  });
  afterAll(async () => {
    await database.close();
    if (databaseUrl) await dropDatabase(databaseUrl);
  });

  const open = async (account = accountOf(ada)) => {
    const id = uuidv7();
    const session = { tokenHash: null, id, method: 'password', address: '192.0.2.1', device: 'curl', lifeMs: LIFE_MS };
    await rows.insert(account, session, async () => undefined);
    return id;
  };
  const stored = async (id: string) =>
    database.query((tables) => tables.selectFrom('sessions').selectAll().where('id', '=', id).executeTakeFirst());
  const change = (id: string, values: { last_used_at?: number; expires_at?: number }) =>
    database.write((tables) => tables.updateTable('sessions').set(values).where('id', '=', id).execute());

  test('a use is due once in an hour of the clock, and is recorded as that hour', async () => {
    const id = await open();
    const { last_used_at: hour = 0, created_at = 0, authenticated_at } = (await stored(id)) ?? {};
    expect([hour % HOUR_MS, created_at - hour < HOUR_MS, authenticated_at]).toEqual([0, true, created_at]);
    expect(await rows.find(id)).toEqual({ ...accountOf(ada), sessionId: id, isUseDue: 0 });
    await change(id, { last_used_at: hour - HOUR_MS });
    expect(await rows.find(id)).toEqual({ ...accountOf(ada), sessionId: id, isUseDue: 1 });
    expect(await rows.recordUse(id, LIFE_MS)).toBe(true);
    expect((await stored(id))?.last_used_at).toBeGreaterThanOrEqual(hour);
    expect(await rows.find(id)).toMatchObject({ isUseDue: 0 });
  });

  test('a use keeps the row for longer, never for shorter, and brings none back', async () => {
    const id = await open();
    const { expires_at: end = 0 } = (await stored(id)) ?? {};
    // A use that was overtaken by a renewal.
    expect(await rows.recordUse(id, LIFE_MS / 2)).toBe(true);
    expect((await stored(id))?.expires_at).toBe(end);
    expect(await rows.recordUse(id, 2 * LIFE_MS)).toBe(true);
    expect((await stored(id))?.expires_at).toBeGreaterThanOrEqual(end + LIFE_MS);
    expect(await rows.endOf(accountOf(ada), id, backgroundJob)).toBeDefined();
    expect(await rows.recordUse(id, LIFE_MS)).toBe(false);
    expect(await stored(id)).toBeUndefined();
    expect(await rows.find(id)).toBeUndefined();
  });

  test('many uses at once are each told that the session is there', async () => {
    const id = await open();
    const answers = await Promise.all(Array.from({ length: 20 }, () => rows.recordUse(id, LIFE_MS)));
    expect(answers).toEqual(Array(20).fill(true));
  });

  test('one opened beside the end of all, by an epoch that was read before it, is not listed', async () => {
    const read = accountOf(bob);
    expect(await rows.endAll(bob.id, backgroundJob)).toBe(true);
    const late = await open(read);
    const now = { ...read, sessionEpoch: read.sessionEpoch + 1 };
    expect(await rows.list(now)).toEqual([]);
    expect((await rows.find(late))?.sessionEpoch).toBe(now.sessionEpoch);
    expect(await rows.endAll('user_none', backgroundJob)).toBe(false);
  });

  test('of very many the newest hundred are listed', async () => {
    const of = { ...accountOf(ada), id: 'user_of_many' };
    const ids: string[] = [];
    for (let i = 0; i < 101; i++) ids.push(await open(of));
    expect((await rows.list(of)).map(({ id }) => id)).toEqual(ids.slice(1).reverse());
  });
});
