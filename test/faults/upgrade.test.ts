import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { migrationNames } from '../../entities/migrations/index.ts';
import { callerOf } from '../contract/rig/callers.ts';
import { loggedIn } from '../contract/rig/scenario.ts';
import { startUploading, type Uploading } from '../contract/uploads/storage.ts';
import { violations } from '../rig/observe/history.ts';
import { migrate } from '../rig/process/command.ts';
import { lastRelease, type Release, releaseAt } from '../rig/process/release.ts';
import { root } from '../rig/process/service.ts';
import { startMysql } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';
import { figuresOf, startEvenLoad } from './even-load.ts';
import { failures, outcomeOf, summary, unlimited } from './load.ts';
import { rollingLoad } from './rolling.ts';

const { UPGRADE_FROM, MIGRATION_USERS, MIGRATION_RATE } = process.env;
/** Calls that both versions answer, in each state of an upgrade. */
const CALLS = 100;

/** The next two are more by MIGRATION_USERS and MIGRATION_RATE. Each user has a session and a mail, and an event if the release knows events. */
const USERS = Number(MIGRATION_USERS ?? 5000);
const PER_SECOND = Number(MIGRATION_RATE ?? 100);
const PEOPLE = 20;
/** The load before and after the migrations. */
const QUIET_MS = 3000;

let release: Release;
beforeAll(async () => {
  release = await (UPGRADE_FROM ? releaseAt(UPGRADE_FROM) : lastRelease());
});

describe('a running pair', () => {
  let uploading: Uploading;
  beforeAll(async () => {
    uploading = await startUploading('S3', unlimited, 2, release.tree);
  });
  afterAll(() => uploading?.stop());

  test('an upgrade from the last release and its rollback fail no call under load', async () => {
    const { load, replace } = rollingLoad(uploading, { users: 8 });
    const further = async () => {
      const { length } = load.history;
      await until(() => load.history.length > length + CALLS, { what: `${CALLS} calls` });
      expect(failures(load.history)).toEqual([]);
    };
    await further();
    // And the upgrade again: the previous release leaves mails of unknown kinds to a newer instance.
    for (const tree of [root, release.tree, root]) {
      for (const service of uploading.stack.services) {
        await replace(service, { tree });
        await further();
      }
    }
    await load.finish();
    expect(failures(load.history)).toEqual([]);
    expect(violations(load.history, await outcomeOf(uploading))).toEqual([]);
    console.log(`Upgrade: ${release.name} to this state and back; ${summary(load.history)}; failed 0`);
  });
});

describe('migrations beside requests', () => {
  let mysql: PrivateServer;
  let stack: Stack;
  let sessions: string[];
  beforeAll(async () => {
    mysql = await startMysql();
    const env = { ...unlimited, LOG_LEVEL: 'warn' };
    stack = await startStack('real', { mysqlUrl: mysql.url, tree: release.tree, env });
    const scenario = { stack, call: callerOf('rest', stack.url) };
    const people = await Promise.all(Array.from({ length: PEOPLE }, () => loggedIn(scenario)));
    sessions = people.map(({ session }) => session);
    await addUsers(stack);
  });
  afterAll(async () => {
    await stack?.stop();
    await mysql?.stop();
  });

  test(`all migrations since the last release fail no request, with ${USERS} users and ${PER_SECOND} requests a second`, async () => {
    const load = startEvenLoad({ url: stack.url, sessions, perSecond: PER_SECOND });
    await until(() => load.calls.length > 0);
    const ready = performance.now();
    await pause(QUIET_MS);
    const began = performance.now();
    await migrate({ ...stack.services[0]?.env });
    const migrated = performance.now();
    await pause(QUIET_MS);
    await load.stop();
    const rows = await stack.database<{ name: string }>('select name from mikro_orm_migrations order by name');
    const before = figuresOf(load.calls, ready, began);
    const beside = figuresOf(load.calls, began, migrated);
    console.log(
      `Migrations since ${release.name}: ${USERS} users in ${Math.round(migrated - began)} ms; before ${JSON.stringify(before)}, ` +
        `beside ${JSON.stringify(beside)}, after ${JSON.stringify(figuresOf(load.calls, migrated, migrated + QUIET_MS))}; failed ${load.failures.length}`,
    );
    expect(load.failures.slice(0, 5)).toEqual([]);
    expect(rows.map(({ name }) => name)).toEqual(migrationNames);
  });
});

async function addUsers(stack: Stack): Promise<void> {
  const now = Date.now();
  const id = 'left(sha2(id, 256), 36)';
  await stack.database(
    `insert into users (id, email, name, search_name, provider, role, email_verified, session_epoch, created_at)
     select concat('user_', left(sha2(n, 256), 36)), concat('many.', n, '@example.test'), 'Many', 'many', 'email', 'user', 1, 0, 0
     from (select row_number() over () as n from information_schema.columns a, information_schema.columns b limit ${USERS}) numbers`,
  );
  await stack.database(
    `insert into sessions (id, user_id, epoch, method, address, device, created_at, authenticated_at, last_used_at, expires_at)
     select ${id}, id, 0, 'password', '', '', ${now}, ${now}, ${now}, ${now + 86_400_000} from users where name = 'Many'`,
  );
  await stack.database(
    `insert into outbox (id, kind, email, inbox, user_id, state, attempts, due_at, expires_at, created_at)
     select ${id}, 'verification', email, email, id, 'sent', 1, ${now}, ${now}, ${now} from users where name = 'Many'`,
  );
  const [events] = await stack.database("show tables like 'activity'");
  if (!events) return;
  await stack.database(
    `insert into activity (id, user_id, kind, actor, address, device, request_id, created_at)
     select ${id}, id, 'registered', 'user', '', '', '', ${now} from users where name = 'Many'`,
  );
}
