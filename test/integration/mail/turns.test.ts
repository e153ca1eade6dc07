import { v7 as uuidv7 } from 'uuid';
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest';
import { createInboxTurns } from '../../../server/accounts/mail/inbox-turns.ts';
import type { MailKind } from '../../../server/accounts/mail/kinds.ts';
import { createOutbox, type Outbox } from '../../../server/accounts/mail/outbox.ts';
import type { Mailing } from '../../../server/accounts/mail/outbox-rows.ts';
import { createMailTurns, mailTurns } from '../../../server/accounts/mail/turns.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { DELIVERIES_AT_ONCE } from '../../../server/parts/mail/contract.ts';
import { stackNames } from '../../contract/rig/scenario.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';
import { until } from '../../rig/until.ts';

const MINUTE_MS = 60_000;
const NOTICE = 'passkey-removed';
const LINK = 'reset-password';

test('links and warnings precede notices, and each sender’s first mail precedes any second', () => {
  let now = 0;
  const turnOf = createMailTurns(() => now);
  const turns = (kind: MailKind, sender: string, count: number) =>
    Array.from({ length: count }, () => turnOf(kind, sender));
  expect(turns(NOTICE, 'flooder', 12)).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 19, 19]);
  expect(turns(NOTICE, 'other', 2)).toEqual([10, 11]);
  // A thief's notices do not delay the warnings and links of the same user.
  expect(turns(LINK, 'flooder', 12)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9]);
  expect(turns('password-changed', 'other', 1)).toEqual([0]);
  now = MINUTE_MS;
  expect(turns(NOTICE, 'flooder', 1)).toEqual([10]);
  expect(mailTurns).toEqual(Array.from({ length: 20 }, (_, turn) => turn));
});

describe.each(stackNames)('the outbox on %s parts', (kind) => {
  const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn(), fatal: vi.fn() };
  const rate = { points: 1, seconds: 1 };
  let databaseUrl: string | undefined;
  let database: Database;
  let outbox: Outbox;
  let sent: string[];
  let held: (() => void)[];

  beforeEach(async () => {
    databaseUrl = kind === 'real' ? await createDatabase(inject('mysqlUrl')) : undefined;
    database = await openDatabase({ databaseUrl, dataDir: temporaryDirectory('turns') });
    await database.migrate();
    [sent, held] = [[], []];
    outbox = createOutbox({
      ...{ database, log, sweeps: [], turns: createInboxTurns() },
      rates: { mail: rate, inbox: rate },
      admission: { admit: async (row) => row, issueWithinLimits: async () => undefined },
      compose: async ({ email, kind }) => ({ to: { address: email }, subject: kind, text: '', html: '' }),
      mail: {
        send: ({ to, subject }) => {
          sent.push(`${subject} to ${to.address}`);
          return new Promise((resolve) => held.push(resolve));
        },
        close: () => undefined,
      },
    });
  });
  afterEach(async () => {
    const stopped = outbox.stop();
    const release = setInterval(() => held.splice(0).forEach((resolve) => void resolve()), 5);
    await stopped;
    clearInterval(release);
    await database.close();
    if (databaseUrl) await dropDatabase(databaseUrl);
  });

  const enqueue = (mails: { kind: MailKind; by: string; to?: string; actorId?: string }[]) =>
    database.change(async (tables) => {
      for (const { kind, by, to = by, actorId } of mails) {
        const request = { language: () => undefined, ...(actorId && { actorId }) };
        await outbox.enqueue(tables, { kind, email: `${to}@example.test`, userId: by } as Mailing, request);
      }
    });
  const flood = (kind: MailKind, by: string, count: number) =>
    enqueue(Array.from({ length: count }, () => ({ kind, by })));
  const free = async (count: number) => {
    const before = sent.length;
    await until(() => held.length === DELIVERIES_AT_ONCE, { what: 'a full row of deliveries' });
    held.splice(0, count).forEach((resolve) => void resolve());
    await until(() => sent.length === before + count, { what: 'the next deliveries' });
    return sent.slice(before);
  };

  test('while four users flood it, mails of others come next', async () => {
    for (const by of ['flooder-1', 'flooder-2', 'flooder-3', 'flooder-4']) await flood(NOTICE, by, 50);
    outbox.start();
    await until(() => sent.length === DELIVERIES_AT_ONCE);
    // Each has its first mail sent before any has its third.
    expect(new Set(sent.slice(0, 8)).size).toBe(4);
    await enqueue([
      { kind: NOTICE, by: 'bob' },
      { kind: 'verify-email', by: 'cyd' },
      { kind: 'password-changed', by: 'flooder-1' },
      { kind: LINK, by: 'ada' },
    ]);
    const next = await free(4);
    expect(next.slice(0, 3).sort()).toEqual([
      'password-changed to flooder-1@example.test',
      'reset-password to ada@example.test',
      'verify-email to cyd@example.test',
    ]);
    expect(next[3]).toBe('passkey-removed to bob@example.test');
  });

  test('mails from an administrator count for the administrator, not for their receivers', async () => {
    const invited = Array.from({ length: 40 }, (_, i) => ({
      kind: 'invitation' as const,
      by: `user_${uuidv7()}`,
      to: `guest-${i}`,
      actorId: 'user_admin',
    }));
    await enqueue(invited);
    outbox.start();
    await until(() => sent.length === DELIVERIES_AT_ONCE);
    await enqueue([{ kind: 'invitation', by: 'user_other', to: 'ada', actorId: 'user_other' }]);
    expect(await free(1)).toEqual(['invitation to ada@example.test']);
  });
});
