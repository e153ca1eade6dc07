import { v7 as uuidv7 } from 'uuid';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { User } from '../../../entities/index.ts';
import { createSessionRows, type SessionRows } from '../../../server/accounts/sessions/rows.ts';
import { accountOf } from '../../../server/accounts/users/users.ts';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { createActivity } from '../../../server/activity/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { stackNames } from '../../contract/rig/scenario.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';

const LIFE_MS = 60_000;
/** Instead of the hash of a token. */
const hashOf = (id: string) => id.padEnd(43, '-');
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
    const session = {
      tokenHash: hashOf(id),
      id,
      method: 'password',
      address: '192.0.2.1',
      device: 'curl',
      lifeMs: LIFE_MS,
    } as const;
    await rows.insert(account, session, async () => undefined);
    return id;
  };
  const find = (id: string, tokenHash = hashOf(id)) => rows.find({ id, tokenHash });
  const stored = async (id: string) =>
    database.query((tables) => tables.selectFrom('sessions').selectAll().where('id', '=', id).executeTakeFirst());
  const change = (id: string, values: { last_used_at?: number; expires_at?: number; token_hash?: null }) =>
    database.write((tables) => tables.updateTable('sessions').set(values).where('id', '=', id).execute());

  test('a use is recorded once per hour, as that hour', async () => {
    const id = await open();
    const { last_used_at: hour = 0, created_at = 0, authenticated_at } = (await stored(id)) ?? {};
    expect([hour % HOUR_MS, created_at - hour < HOUR_MS, authenticated_at]).toEqual([0, true, created_at]);
    expect(await find(id)).toEqual({ ...accountOf(ada), sessionId: id, tokenHash: hashOf(id), isUseDue: 0 });
    await change(id, { last_used_at: hour - HOUR_MS });
    expect(await find(id)).toEqual({ ...accountOf(ada), sessionId: id, tokenHash: hashOf(id), isUseDue: 1 });
    expect(await rows.recordUse(id, LIFE_MS)).toBe(true);
    expect((await stored(id))?.last_used_at).toBeGreaterThanOrEqual(hour);
    expect(await find(id)).toMatchObject({ isUseDue: 0 });
  });

  test('a use only prolongs the row, and restores no deleted one', async () => {
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
    expect(await find(id)).toBeUndefined();
  });

  test('a session is found by its own token only, and one without a hash by its id', async () => {
    const [id, other] = [await open(), await open(accountOf(bob))];
    const outcomes = await Promise.allSettled([
      find(id),
      find(other),
      find(id, hashOf(other)),
      find(other, hashOf(id)),
    ]);
    expect(
      outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value?.name : outcome.reason.code)),
    ).toEqual(['ada', 'bob', 'SERVICE_UNAVAILABLE', 'SERVICE_UNAVAILABLE']);
    await change(id, { token_hash: null });
    expect(await find(id, hashOf(other))).toMatchObject({ name: 'ada' });
  });

  test('concurrent uses all see the session', async () => {
    const id = await open();
    const answers = await Promise.all(Array.from({ length: 20 }, () => rows.recordUse(id, LIFE_MS)));
    expect(answers).toEqual(Array(20).fill(true));
  });

  test('a session opened with an epoch from before the end of all is not listed', async () => {
    const read = accountOf(bob);
    expect(await rows.endAll(bob.id, backgroundJob)).toBe(true);
    const late = await open(read);
    const now = { ...read, sessionEpoch: read.sessionEpoch + 1 };
    expect(await rows.list(now)).toEqual([]);
    expect((await find(late))?.sessionEpoch).toBe(now.sessionEpoch);
    expect(await rows.endAll('user_none', backgroundJob)).toBe(false);
  });

  test('past a thousand sessions one login in sixteen ends the oldest and returns their keys', async () => {
    const of = { ...accountOf(ada), id: 'user_of_thousands' };
    const session = { method: 'password', address: '192.0.2.1', device: 'curl', lifeMs: LIFE_MS } as const;
    const insert = (id: string) => rows.insert(of, { ...session, id, tokenHash: `hash-${id}` }, async () => undefined);
    const idEndingWith = (digit: string) => uuidv7().slice(0, -1) + digit;
    const idsLeft = async () => {
      const left = database.query((tables) =>
        tables.selectFrom('sessions').select('id').where('user_id', '=', of.id).orderBy('id').execute(),
      );
      return (await left).map(({ id }) => id);
    };
    const ids: string[] = [];
    for (let i = 0; i < 1003; i++) {
      const id = idEndingWith('1');
      ids.push(id);
      expect(await insert(id)).toEqual({ recorded: undefined, ended: [] });
    }
    const last = idEndingWith('0');
    const inserted = await insert(last);
    const ended = ids.slice(0, 4);
    expect(inserted?.ended.map(({ tokenHash }) => tokenHash).sort()).toEqual(ended.map((id) => `hash-${id}`));
    expect(await idsLeft()).toEqual([...ids.slice(4), last]);
    expect(await insert(idEndingWith('0'))).toMatchObject({ ended: [{ tokenHash: `hash-${ids[4]}` }] });
  });

  test('the newest hundred are listed', async () => {
    const of = { ...accountOf(ada), id: 'user_of_many' };
    const ids: string[] = [];
    for (let i = 0; i < 101; i++) ids.push(await open(of));
    expect((await rows.list(of)).map(({ id }) => id)).toEqual(ids.slice(1).reverse());
  });
});
