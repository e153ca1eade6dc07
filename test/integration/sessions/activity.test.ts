import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { backgroundJob, type Caller } from '../../../server/activity/caller.ts';
import { createActivity } from '../../../server/activity/index.ts';
import { type AllTables, type Database, sql } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { stackNames } from '../../contract/rig/scenario.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';
import { until } from '../../rig/until.ts';

const DAY_MS = 24 * 60 * 60_000;
const USER = `user_${uuidv7()}`;

describe.each(stackNames)('the table of events, on %s parts', (kind) => {
  const dataDir = temporaryDirectory('activity');
  let databaseUrl: string | undefined;
  let database: Database;

  beforeAll(async () => {
    databaseUrl = kind === 'real' ? await createDatabase(inject('mysqlUrl')) : undefined;
    database = await openDatabase({ databaseUrl, dataDir });
    await database.migrate();
  });
  afterAll(async () => {
    await database.close();
    if (databaseUrl) await dropDatabase(databaseUrl);
  });

  test('all events older than the retention are deleted', async () => {
    const activity = createActivity(database, { keptDays: 180 });
    const row = (msecs: number) => ({
      id: uuidv7({ msecs }),
      user_id: USER,
      kind: 'logged-in',
      actor: 'user',
      actor_id: null,
      address: '192.0.2.1',
      device: 'curl',
      request_id: '',
      details: null,
      created_at: msecs,
    });
    const now = Date.now();
    const recent = [row(now - 180 * DAY_MS + 60_000), row(now)];
    const old = Array.from({ length: 2500 }, (_, i) => row(now - 180 * DAY_MS - 60_000 - i * 1000));
    for (let i = 0; i < old.length; i += 500) {
      const rows = old.slice(i, i + 500);
      await database.write((tables) => tables.insertInto('activity').values(rows).execute());
    }
    await database.write((tables) => tables.insertInto('activity').values(recent).execute());
    await activity.sweep();
    const left = await database.query((tables) =>
      tables.selectFrom('activity').select('id').where('user_id', '=', USER).orderBy('id').execute(),
    );
    expect(left).toEqual(recent.map(({ id }) => ({ id })));
    const { events } = await activity.list(USER, { limit: 10 }, 'user');
    expect(events.map(({ id }) => id)).toEqual(recent.map(({ id }) => id).reverse());
  });

  test('an event takes the place of the latest one only if that is of the same actor', async () => {
    const activity = createActivity(database, { keptDays: 1 });
    const administrator = { ...backgroundJob, actor: 'administrator' as const, actorId: 'user_admin' };
    const changed = { kind: 'profile-changed' as const, details: { fields: 'bio' } };
    const take = (caller: Caller) =>
      database.change((tables) => activity.takeLatest(tables, 'user_acted', 'profile-changed', caller));
    await database.write((tables) => activity.record(tables, 'user_acted', changed, administrator));
    expect(await take(backgroundJob)).toBeUndefined();
    expect(await take({ ...administrator, actorId: 'user_another' })).toBeUndefined();
    expect(await take(administrator)).toEqual(changed.details);
    expect(await take(administrator)).toBeUndefined();
  });

  describe('an event that is replaced takes its deliveries with it', () => {
    const activity = () => createActivity(database, { keptDays: 1 });

    const recorded = async () => {
      const userId = `user_${uuidv7()}`;
      const changed = { kind: 'profile-changed' as const, details: { fields: 'bio' } };
      await database.write((tables) => activity().record(tables, userId, changed, backgroundJob));
      return userId;
    };
    /** As the sequencer does. */
    const deliver = async (tables: AllTables, userId: string) => {
      const webhook = { id: randomUUID(), url: 'https://receiver.test', types: '*', include: '', description: '' };
      const times = { enabled_at: 0, due_at: 0, created_at: 0 };
      await tables
        .insertInto('webhooks')
        .values({ ...webhook, ...times, secret: '' })
        .execute();
      await tables.updateTable('activity').set({ number: 7 }).where('user_id', '=', userId).execute();
      await sql`insert into webhook_deliveries
        (webhook_id, event_id, number, kind, user_id, state, attempts, due_at, created_at)
        select ${webhook.id}, id, number, kind, user_id, 'waiting', 0, 0, 0 from activity
        where user_id = ${userId}`.execute(tables);
    };
    const take = (userId: string) =>
      database.change((tables) => activity().takeLatest(tables, userId, 'profile-changed', backgroundJob));
    const deliveriesOf = (userId: string) =>
      database.query((tables) =>
        tables.selectFrom('webhook_deliveries').select('number').where('user_id', '=', userId).execute(),
      );

    test('if it has a number', async () => {
      const userId = await recorded();
      await database.change((tables) => deliver(tables, userId));
      expect(await deliveriesOf(userId)).toHaveLength(1);
      await take(userId);
      expect(await deliveriesOf(userId)).toEqual([]);
    });

    test('if it gets its number meanwhile', async () => {
      const userId = await recorded();
      // Embedded parts have one writer at a time.
      const isTaking = async (tables: AllTables) => {
        if (kind !== 'real') return true;
        const { rows } = await sql`select 1 from information_schema.processlist
          where db = database() and info like 'delete from %activity%'`.execute(tables);
        return rows.length > 0;
      };
      let taken: Promise<unknown> | undefined;
      await database.change(async (tables) => {
        await deliver(tables, userId);
        taken = take(userId);
        await until(() => isTaking(tables));
      });
      expect(await taken).toEqual({ fields: 'bio' });
      expect(await deliveriesOf(userId)).toEqual([]);
    });
  });

  test('client data is cut to the columns, so no event fails for it', async () => {
    const activity = createActivity(database, { keptDays: 1 });
    const long = { kind: 'profile-changed' as const, details: { fields: 'x'.repeat(900) } };
    const caller = { ...backgroundJob, clientAddress: `${'f'.repeat(200)}`, userAgent: 'x'.repeat(5000) };
    await database.write((tables) => activity.record(tables, 'user_other', long, caller));
    const { events } = await activity.list('user_other', { limit: 1 }, 'user');
    expect(events).toMatchObject([{ address: 'f'.repeat(64), details: long.details }]);
  });
});

test('the service only inserts, numbers, reads and deletes events', () => {
  const root = join(import.meta.dirname, '../../..');
  const sources = ['server', 'routers']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true }).map((name) => join(root, folder, `${name}`)),
    )
    .filter((file) => file.endsWith('.ts'));
  expect(sources.length).toBeGreaterThan(100);
  const changing =
    /updateTable\(\s*'activity|replaceInto\(\s*'activity|update\s+`?activity|onConflict|onDuplicateKeyUpdate|ActivityEvent\b(?=[^;]*\bassign)/i;
  const found = sources.filter((file) => {
    const text = readFileSync(file, 'utf8');
    return text.includes("'activity'") && changing.test(text);
  });
  expect(found.map((file) => relative(root, file))).toEqual(['server/events/unnumbered.ts']);
});
