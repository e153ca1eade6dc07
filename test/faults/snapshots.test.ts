import { Kysely } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { operator } from '../../server/activity/caller.ts';
import { createActivity } from '../../server/activity/index.ts';
import { createEvents } from '../../server/events/index.ts';
import { type Database, sql, type Tables } from '../../server/parts/database/contract.ts';
import { openDatabase } from '../../server/parts/database/index.ts';
import { mysqlDialect } from '../../server/parts/database/mysql-dialect.ts';
import { createDatabase, startMysql } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { until } from '../rig/until.ts';

/** A server of its own: the pages that it reads are counted. */
let server: PrivateServer;
let database: Database;
let backup: Kysely<Tables>;
beforeAll(async () => {
  server = await startMysql();
  const databaseUrl = await createDatabase(server.url);
  database = await openDatabase({ databaseUrl, dataDir: '' });
  await database.migrate();
  backup = new Kysely<Tables>({ dialect: mysqlDialect(databaseUrl, { decides: true }) });
});
afterAll(async () => {
  await backup?.destroy();
  await database?.close();
  await server?.stop();
});

const EVENTS = 50_000;
const AT_ONCE = 1000;
const POLLS = 50;

async function pagesRead(): Promise<number> {
  const { rows } = await sql<{ Value: string }>`show global status like 'Innodb_buffer_pool_read_requests'`.execute(
    backup,
  );
  return Number(rows[0]?.Value);
}

test(`during a backup, ${EVENTS} events numbered meanwhile do not slow down the sequencer`, async () => {
  let polls = 0;
  const counted: Database = {
    ...database,
    query(read) {
      polls++;
      return database.query(read);
    },
  };
  const log = { info: () => undefined, warn: () => undefined } as never;
  const serviceTokens = [{ name: 'reader', sha256: '0'.repeat(64) }];
  const { worker } = createEvents({ serviceTokens }, { database: counted, log });
  const last = () =>
    database.query((tables) =>
      tables.selectFrom('event_sequence').select('last_number as number').executeTakeFirstOrThrow(),
    );
  const pagesOfPolls = async (): Promise<number> => {
    const [from, before] = [polls, await pagesRead()];
    await until(() => polls >= from + POLLS);
    return (await pagesRead()) - before;
  };
  worker.start();
  const atRest = await pagesOfPolls();
  const copying = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const dump = backup.connection().execute(async (connection) => {
    await sql`set session transaction isolation level repeatable read`.execute(connection);
    await sql`start transaction with consistent snapshot`.execute(connection);
    copying.resolve();
    await done.promise;
    await sql`commit`.execute(connection);
  });
  await copying.promise;
  const { recordAll } = createActivity(database, { keptDays: 1 });
  for (let n = 0; n < EVENTS; n += AT_ONCE) {
    const users = Array.from({ length: AT_ONCE }, (_, i) => `user_${n + i}`);
    await database.change(async (tables) => {
      await recordAll(tables, users, { kind: 'verified' }, operator);
      // As if the backup had begun a minute before.
      const ago = sql<number>`created_at - 60000`;
      await tables.updateTable('activity').set({ created_at: ago }).where('user_id', 'in', users).execute();
    });
  }
  await database.change((tables) => recordAll(tables, ['user_now'], { kind: 'verified' }, operator));
  await until(async () => Number((await last()).number) === EVENTS + 1, { within: 60_000 });
  const during = await pagesOfPolls();
  done.resolve();
  await dump;
  await worker.stop();
  console.log(`Pages read by ${POLLS} polls: ${atRest} at rest, ${during} during a backup with ${EVENTS} events`);
  expect(during).toBeLessThan(atRest + 200 * POLLS);
});
