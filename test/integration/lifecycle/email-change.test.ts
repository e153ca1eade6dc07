import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { User } from '../../../entities/index.ts';
import { accountOf } from '../../../server/accounts/users/index.ts';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { createRules, openParts } from '../../../server/assemble.ts';
import { parseConfig } from '../../../server/config/index.ts';
import { createSecrets } from '../../../server/secrets.ts';
import { createLog } from '../../../server/telemetry/log.ts';
import { readTexts } from '../../../server/texts/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

const config = parseConfig({ DATA_DIR: temporaryDirectory('email-change'), LOG_LEVEL: 'silent' });
const REQUEST_DELAY_MS = 500;
const caller = { ...backgroundJob, formerToken: undefined, deviceCookie: undefined };
const browser = 'B'.repeat(43);
let parts: Awaited<ReturnType<typeof openParts>>;
let rules: ReturnType<typeof createRules>;

beforeAll(async () => {
  const log = await createLog(config);
  const secrets = createSecrets(['x'.repeat(32)]);
  parts = await openParts(config, { secrets, log });
  await parts.database.migrate();
  rules = createRules(config, parts, { identityProviders: new Map(), secrets, texts: readTexts(undefined), log });
});
afterAll(() => parts.close());
afterEach(() => {
  vi.restoreAllMocks();
});

/** A user with an open session, as validated. */
async function loggedIn(name: string) {
  const user = User.register({ email: `${name}@example.test`, name, passwordHash: 'x' });
  await parts.database.transaction((em) => em.insert(user));
  const { token } = await rules.accounts.sessions.openSession(accountOf(user), { method: 'password' }, caller);
  const session = await rules.accounts.sessions.validate(token);
  if (!session) throw new Error('the session is not open');
  return session;
}

const requestedOf = (userId: string) =>
  parts.database.query((tables) =>
    tables
      .selectFrom('outbox')
      .select('email')
      .where('user_id', '=', userId)
      .where('kind', '=', 'confirm-email')
      .execute(),
  );
const change = (session: Awaited<ReturnType<typeof loggedIn>>, email: string) =>
  rules.accounts.lifecycle.emailChange.changeEmail(session, email, { caller, browser });

test('an address that another request has set since the validation is refused as unchanged', async () => {
  const session = await loggedIn('ada');
  const { id } = session.user;
  const moved = 'countess@example.test';
  await parts.database.write((tables) =>
    tables.updateTable('users').set({ email: moved }).where('id', '=', id).execute(),
  );
  await expect(change(session, moved)).rejects.toMatchObject({
    code: 'VALIDATION_FAILED',
    details: { email: { rule: 'unchanged' } },
  });
  expect(await requestedOf(id)).toEqual([]);
  await change(session, 'lovelace@example.test');
  expect(await requestedOf(id)).toEqual([{ email: 'lovelace@example.test' }]);
});

type Work = (...given: unknown[]) => Promise<unknown>;

test.each<[string, 'transaction' | 'change', (session: Awaited<ReturnType<typeof loggedIn>>) => Promise<unknown>]>([
  ['a change of address', 'transaction', (session) => change(session, 'robert@example.test')],
  [
    'a forgotten password',
    'change',
    ({ user }) => rules.accounts.lifecycle.passwordReset.forgotPassword(user.email, '/', caller),
  ],
])('the mail for %s wakes the worker after the commit', async (what, method, request) => {
  const session = await loggedIn(what.replaceAll(' ', '-'));
  const timers = vi.spyOn(globalThis, 'setTimeout');
  const wakes = () => timers.mock.calls.filter(([, ms]) => ms === REQUEST_DELAY_MS).length;
  const beforeCommit = vi.fn();
  const transact = parts.database[method] as (work: Work, ...rest: unknown[]) => Promise<unknown>;
  const watched: typeof transact = (work, ...rest) =>
    transact(
      async (...given) => {
        const done = await work(...given);
        beforeCommit(wakes());
        return done;
      },
      ...rest,
    );
  vi.spyOn(parts.database, method).mockImplementation(watched as never);
  await request(session);
  expect(beforeCommit.mock.calls).toEqual([[0]]);
  expect(wakes()).toBe(1);
});
