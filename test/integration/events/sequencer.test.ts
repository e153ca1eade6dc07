import { Kysely } from 'kysely';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { operator } from '../../../server/activity/caller.ts';
import { createActivity, firstIdOf } from '../../../server/activity/index.ts';
import type { NewEvent } from '../../../server/activity/kinds.ts';
import { createEvents, type Events, type PublicEvent } from '../../../server/events/index.ts';
import { type AllTables, type Database, sql, type Tables } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { mysqlDialect } from '../../../server/parts/database/mysql-dialect.ts';
import { stackNames } from '../../contract/rig/scenario.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';
import { startSilentProxy } from '../../rig/servers/proxy.ts';
import { until } from '../../rig/until.ts';

const serviceTokens = [{ name: 'reader', sha256: '0'.repeat(64) }];
const log = { info: () => undefined, warn: () => undefined } as never;
/** As in unnumbered.ts. */
const MAX_NUMBERED = 500;

describe.each(stackNames)('on %s parts', (kind) => {
  const dataDir = temporaryDirectory('events');
  let databaseUrl: string | undefined;
  /** As two instances have them. */
  let databases: Database[];
  let database: Database;
  beforeAll(async () => {
    databaseUrl = kind === 'real' ? await createDatabase(inject('mysqlUrl')) : undefined;
    databases = await Promise.all([0, 1].map(() => openDatabase({ databaseUrl, dataDir })));
    for (const each of databases) await each.migrate();
    database = databases[0] as Database;
  });
  afterAll(async () => {
    for (const each of databases) await each.close();
    if (databaseUrl) await dropDatabase(databaseUrl);
  });

  const eventsOn = (on: Database, tokens = serviceTokens) =>
    createEvents({ serviceTokens: tokens }, { database: on, log });

  const record = (on: Database, userId: string, event: NewEvent = { kind: 'verified' }) =>
    on.change((tables) => createActivity(on, { keptDays: 1 }).record(tables, userId, event, operator));

  const readAll = async (events: Events, after: number): Promise<PublicEvent[]> =>
    (await events.page({ after, limit: 10_000 })).events;

  /** A transaction without the deadline of the service. */
  async function lateCommit(work: (tables: AllTables) => Promise<void>): Promise<void> {
    const tables = new Kysely<Tables>({ dialect: mysqlDialect(databaseUrl ?? '', { decides: true }) });
    await tables
      .transaction()
      .execute(work)
      .finally(() => tables.destroy());
  }

  const usersIn = (read: PublicEvent[]) => read.map(({ data }) => data.userId);

  /** Runs sequencers while `work` runs. */
  async function sequenced<T>(all: Events[], work: () => Promise<T>): Promise<T> {
    for (const { worker } of all) worker.start();
    return work().finally(() => Promise.all(all.map(({ worker }) => worker.stop())));
  }

  test('events get numbers without gaps, in the order of their time, even from two concurrent sequencers', async () => {
    const all = databases.map((each) => eventsOn(each));
    const events = all[0] as Events;
    const start = await events.lastNumber();
    const users = Array.from({ length: 2 * MAX_NUMBERED + 10 }, (_, i) => `user_many_${i}`);
    for (const user of users.slice(0, 10)) await record(database, user);
    await database.change((tables) =>
      createActivity(database, { keptDays: 1 }).recordAll(tables, users.slice(10), { kind: 'verified' }, operator),
    );
    await sequenced(all, () => until(async () => (await events.lastNumber()) === start + users.length));
    const read = await readAll(events, start);
    expect(usersIn(read)).toEqual(users);
    expect(read.map(({ number }) => number)).toEqual(users.map((_, i) => start + i + 1));
  });

  test('the clock of an instance, and with it the id of an event, does not decide the order', async () => {
    const events = eventsOn(database);
    const start = await events.lastNumber();
    await record(database, 'user_first');
    // As an instance whose clock is an hour fast makes it, a millisecond before the other event.
    await database.write((tables) =>
      tables
        .updateTable('activity')
        .set({ id: firstIdOf(Date.now() + 3_600_000), created_at: sql`created_at - 1` })
        .where('user_id', '=', 'user_first')
        .execute(),
    );
    await record(database, 'user_second');
    await sequenced([events], () => until(async () => (await events.lastNumber()) === start + 2));
    expect(usersIn(await readAll(events, start))).toEqual(['user_first', 'user_second']);
  });

  test('after a failure fewer events are numbered at once, until a transaction succeeds', async () => {
    const events = eventsOn(database);
    const start = await events.lastNumber();
    const users = Array.from({ length: 100 }, (_, i) => `user_fewer_${i}`);
    await database.change((tables) =>
      createActivity(database, { keptDays: 1 }).recordAll(tables, users, { kind: 'verified' }, operator),
    );
    // As with so many webhooks that no more events meet the deadline.
    events.onNumbered(async (_tables, { from, to }) => {
      if (to - from >= 20) throw new Error('the deadline has passed');
    });
    await sequenced([events], () => until(async () => (await events.lastNumber()) === start + users.length));
    expect(usersIn(await readAll(events, start))).toEqual(users);
  });

  test('internal events get no number', async () => {
    const events = eventsOn(database);
    const start = await events.lastNumber();
    const internal: NewEvent = { kind: 'reauthenticated', details: { method: 'password' } };
    for (const event of [internal, undefined, { kind: 'unlocked' } as const, undefined]) {
      await record(database, 'user_a', event);
    }
    await sequenced([events], () => until(async () => (await events.lastNumber()) === start + 2));
    expect((await readAll(events, start)).map(({ type }) => type)).toEqual(['user.verified', 'user.verified']);
    const left = await database.query((tables) =>
      tables.selectFrom('activity').select('id').where('number', 'is', null).execute(),
    );
    expect(left).toEqual([]);
  });

  test('an event of a newer release holds back no other, and gets its number from a newer sequencer', async () => {
    const [events, newer] = [eventsOn(database), eventsOn(database)];
    const start = await events.lastNumber();
    const setKind = (kind: string) =>
      database.write((tables) =>
        tables.updateTable('activity').set({ kind }).where('user_id', '=', 'user_newer').execute(),
      );
    for (const user of ['user_before', 'user_newer', 'user_after']) await record(database, user);
    await setKind('of-a-newer-release');
    await sequenced([events], () => until(async () => (await events.lastNumber()) === start + 2));
    expect(usersIn(await readAll(events, start))).toEqual(['user_before', 'user_after']);
    const left = await database.query((tables) =>
      tables.selectFrom('activity').select('id').where('number', 'is', null).execute(),
    );
    expect(left).toEqual([]);
    // A sequencer that knows the kind.
    await setKind('verified');
    await sequenced([newer], () => until(async () => (await events.lastNumber()) === start + 3));
    expect(usersIn(await readAll(events, start))).toEqual(['user_before', 'user_after', 'user_newer']);
  });

  test('a lease that another process held in between makes a sequencer look for such events again', async () => {
    const events = eventsOn(database);
    const start = await events.lastNumber();
    await sequenced([events], async () => {
      await record(database, 'user_own');
      await until(async () => (await events.lastNumber()) === start + 1);
      // As an older release does.
      await database.change(async (tables) => {
        await createActivity(database, { keptDays: 1 }).record(tables, 'user_left', { kind: 'verified' }, operator);
        await tables.updateTable('activity').set({ number: -1 }).where('user_id', '=', 'user_left').execute();
        await tables.updateTable('event_sequence').set({ owner: 'other', ends_at: 0 }).execute();
      });
      await until(async () => (await events.lastNumber()) === start + 2);
    });
    expect(usersIn(await readAll(events, start))).toEqual(['user_own', 'user_left']);
  });

  test('events that commit hours after their time get numbers too, however many', async () => {
    const events = eventsOn(database);
    const start = await events.lastNumber();
    const count = 4 * MAX_NUMBERED;
    await sequenced([events], async () => {
      await record(database, 'user_recent');
      await until(async () => (await events.lastNumber()) === start + 1);
      const users = Array.from({ length: count }, (_, i) => `user_hours_${i}`);
      await database.change(async (tables) => {
        const { recordAll } = createActivity(database, { keptDays: 1 });
        await recordAll(tables, users, { kind: 'verified' }, operator);
        const ago = sql<number>`created_at - 36e5`;
        await tables.updateTable('activity').set({ created_at: ago }).where('user_id', 'in', users).execute();
      });
      await until(async () => (await events.lastNumber()) === start + 1 + count, { within: 3000, what: 'all numbers' });
    });
  });

  test('without a reader events wait, and are numbered once there is one', async () => {
    const events = eventsOn(database, []);
    let hasReader = false;
    let queries = 0;
    events.enabledIf(() => {
      queries++;
      return hasReader;
    });
    const start = await events.lastNumber();
    await sequenced([events], async () => {
      await record(database, 'user_waits');
      const before = queries;
      await until(() => queries > before + 1);
      expect(await events.lastNumber()).toBe(start);
      hasReader = true;
      await until(async () => (await events.lastNumber()) === start + 1);
    });
    expect(usersIn(await readAll(events, start))).toEqual(['user_waits']);
  });

  test('what is done with numbers is done in their transaction: if it fails, they are given again', async () => {
    const events = eventsOn(database);
    const start = await events.lastNumber();
    const ranges: object[] = [];
    events.onNumbered(async (tables, range) => {
      ranges.push(range);
      const { many } = await tables
        .selectFrom('activity')
        .select((row) => row.fn.countAll().as('many'))
        .where('number', '>=', range.from)
        .where('number', '<=', range.to)
        .executeTakeFirstOrThrow();
      expect(Number(many)).toBe(1);
      if (ranges.length === 1) throw new Error('planted');
    });
    await record(database, 'user_told');
    await sequenced([events], () => until(async () => (await events.lastNumber()) === start + 1));
    expect(ranges).toEqual([1, 2].map(() => ({ from: start + 1, to: start + 1 })));
  });

  test('a number that expired, or was never given, is refused', async () => {
    const events = eventsOn(database);
    for (const user of ['user_old', 'user_new']) await record(database, user);
    const start = await events.lastNumber();
    await sequenced([events], () => until(async () => (await events.lastNumber()) === start + 2));
    await expect(readAll(events, start + 3)).rejects.toMatchObject({ code: 'EVENTS_EXPIRED' });
    await createActivity(database, { keptDays: -1 }).sweep();
    expect(await readAll(events, start + 2)).toEqual([]);
    await expect(readAll(events, start + 1)).rejects.toMatchObject({ code: 'EVENTS_EXPIRED' });
    expect(await events.page({ after: 0, limit: 1 })).toEqual({ events: [], next: start + 2, last: start + 2 });
  });

  if (kind === 'real') {
    test('the locks of a host that was lost without a word are gone soon, and events are numbered again', async () => {
      const found = await database.query((tables) =>
        tables.selectNoFrom(sql<number>`@@wait_timeout`.as('seconds')).executeTakeFirstOrThrow(),
      );
      expect(Number(found.seconds)).toBe(15);
      const proxy = await startSilentProxy(Number(new URL(databaseUrl ?? '').port));
      const throughProxy = Object.assign(new URL(databaseUrl ?? ''), { port: `${proxy.port}` }).href;
      const limits = { lockWaitSeconds: 2, lostAfterSeconds: 2 };
      const lost = new Kysely<Tables>({ dialect: mysqlDialect(throughProxy, { limits, decides: true }) });
      const end = Promise.withResolvers<void>();
      const events = eventsOn(database);
      const start = await events.lastNumber();
      const held = Promise.withResolvers<void>();
      const transaction = lost.transaction().execute(async (tables) => {
        await tables.updateTable('event_sequence').set({ expired_number: 0 }).where('id', '=', 1).execute();
        held.resolve();
        await end.promise;
      });
      await held.promise;
      proxy.silence();
      await record(database, 'user_blocked');
      await sequenced([events], () =>
        until(async () => (await events.lastNumber()) === start + 1, { within: 10_000, what: 'a number' }),
      ).finally(async () => {
        end.resolve();
        await Promise.allSettled([transaction, proxy.stop()]);
        await lost.destroy();
      });
    });

    test('an event that commits five seconds late comes later in the stream, and no reader misses it', async () => {
      const [first, second] = databases as [Database, Database];
      const all = databases.map((each) => eventsOn(each));
      const events = all[0] as Events;
      const start = await events.lastNumber();
      const held = Promise.withResolvers<void>();
      const inserted = Promise.withResolvers<void>();
      const activity = createActivity(first, { keptDays: 1 });
      await sequenced(all, async () => {
        const late = lateCommit(async (tables) => {
          await activity.record(tables, 'user_late', { kind: 'verified' }, operator);
          inserted.resolve();
          await held.promise;
        });
        await inserted.promise;
        await record(second, 'user_early');
        await until(async () => (await events.lastNumber()) === start + 1);
        const seen = await readAll(events, start);
        expect(usersIn(seen)).toEqual(['user_early']);
        setTimeout(held.resolve, 5000);
        await late;
        await until(async () => (await events.lastNumber()) === start + 2);
        const next = await readAll(events, start + 1);
        expect(usersIn(next)).toEqual(['user_late']);
        // By id or time a reader that has seen the first would have skipped the second.
        expect((next[0] as PublicEvent).id < (seen[0] as PublicEvent).id).toBe(true);
        expect((next[0] as PublicEvent).timestamp <= (seen[0] as PublicEvent).timestamp).toBe(true);
      });
    });
  }
});
