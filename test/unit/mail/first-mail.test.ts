import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { User } from '../../../entities/index.ts';
import { createMailAdmission } from '../../../server/accounts/mail/admission.ts';
import { createMailComposer } from '../../../server/accounts/mail/composer.ts';
import { createInboxTurns } from '../../../server/accounts/mail/inbox-turns.ts';
import { createOutbox, type Outbox } from '../../../server/accounts/mail/outbox.ts';
import { createEmailChangeRows } from '../../../server/accounts/mail/tokens/email-changes.ts';
import { createEmailCodes } from '../../../server/accounts/mail/tokens/email-codes.ts';
import { createInvitationRows } from '../../../server/accounts/mail/tokens/invitations.ts';
import { createOneTimeTokens } from '../../../server/accounts/mail/tokens/one-time.ts';
import { createRegistrationPolicy } from '../../../server/accounts/users/registration-policy.ts';
import { createUserStore } from '../../../server/accounts/users/users.ts';
import { createActivity } from '../../../server/activity/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import { type AllTables, type Database, rowOf } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createSecrets } from '../../../server/secrets.ts';
import { readTexts } from '../../../server/texts/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { until } from '../../rig/until.ts';

const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn(), fatal: vi.fn() };
const rates = { mail: { points: 10, seconds: 3600 }, inbox: { points: 2, seconds: 3600 } };
const send = vi.fn(async () => undefined);
let database: Database;
let outbox: Outbox;

beforeEach(async () => {
  send.mockReset();
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('welcome') });
  await database.migrate();
  const parts = { database, secrets: createSecrets(['secret']) };
  const tokens = createOneTimeTokens(parts);
  const emailChanges = createEmailChangeRows(parts);
  const turns = createInboxTurns();
  const invitations = createInvitationRows(parts);
  const emailCodes = createEmailCodes(parts.secrets);
  const registration = createRegistrationPolicy({ mode: 'open', domains: [] });
  outbox = createOutbox({
    ...{ database, log, rates, turns },
    admission: createMailAdmission({
      database,
      tokens,
      emailChanges,
      invitations,
      emailCodes,
      registration,
      rates,
      turns,
    }),
    compose: createMailComposer({
      appUrl: 'https://accounts.test',
      site: 'accounts.test',
      brand: parseConfig({}).brand,
      timeZone: 'UTC',
      texts: readTexts(undefined),
      database,
      tokens,
      emailChanges,
      invitations,
      emailCodes,
      users: createUserStore({ database, activity: createActivity(database, { keptDays: 1 }) }),
      methodsOf: async () => [],
    }),
    mail: { send, close: () => undefined },
  });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await outbox.stop();
  await database.close();
});

const newUser = (email: string) => User.register({ email, name: 'Ada', passwordHash: null });
const insert = (tables: AllTables, user: User) => tables.insertInto('users').values(rowOf('users', user)).execute();
const insertWithMail = (user: User) =>
  outbox.withFirstMail(user, 'verify-email', { language: () => undefined }, (queue) =>
    database.change(async (tables) => {
      await insert(tables, user);
      await queue(tables);
    }),
  );
const rows = () =>
  database.query((tables) =>
    tables
      .selectFrom('outbox')
      .select(['email', 'state', 'attempts', 'user_id as userId', 'token_id as tokenId'])
      .execute(),
  );
const whenSettled = () => until(async () => (await rows()).every(({ state }) => state !== 'pending'));

test('the first mail to a user is sent without another query', async () => {
  outbox.start();
  const user = newUser('ada@example.test');
  const looks = vi.spyOn(database, 'transaction');
  await insertWithMail(user);
  await whenSettled();
  expect(await rows()).toMatchObject([{ state: 'sent', attempts: 1, userId: user.id, tokenId: expect.any(String) }]);
  expect(send).toHaveBeenCalledOnce();
  expect(looks).not.toHaveBeenCalled();
});

test('a user who is not stored gets no mail', async () => {
  outbox.start();
  const user = newUser('ada@example.test');
  const failing = outbox.withFirstMail(user, 'verify-email', { language: () => undefined }, (queue) =>
    database.change(async (tables) => {
      await insert(tables, user);
      await queue(tables);
      throw new Error('rolled back');
    }),
  );
  await expect(failing).rejects.toThrow('rolled back');
  expect(await rows()).toEqual([]);
  expect(send).not.toHaveBeenCalled();
  await insertWithMail(user);
  await whenSettled();
  expect(send).toHaveBeenCalledOnce();
});

test('after a freeze longer than the lease, at the commit, the first mail is left to the others', async () => {
  outbox.start();
  const user = newUser('ada@example.test');
  const now = performance.now.bind(performance);
  await outbox.withFirstMail(user, 'verify-email', { language: () => undefined }, async (queue) => {
    await database.change(async (tables) => {
      await insert(tables, user);
      await queue(tables);
    });
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 21_000);
  });
  await until(async () => log.warn.mock.calls.some(([{ err }]) => /lease has ended/.test(err?.message)));
  expect(send).not.toHaveBeenCalled();
});

test('concurrent registrations share the limit of their inbox', async () => {
  outbox.start();
  await Promise.all([1, 2, 3, 4].map((tag) => insertWithMail(newUser(`ada+${tag}@example.test`))));
  await whenSettled();
  expect((await rows()).map(({ state }) => state).sort()).toEqual(['dropped', 'dropped', 'sent', 'sent']);
});

test('if this process does not deliver, the mail waits as a request for one that does', async () => {
  await insertWithMail(newUser('ada@example.test'));
  expect(await rows()).toMatchObject([{ state: 'pending', attempts: 0, userId: null, tokenId: null }]);
  outbox.start();
  await whenSettled();
  expect(send).toHaveBeenCalledOnce();
});
