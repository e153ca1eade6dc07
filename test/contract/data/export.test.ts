import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { expect, test } from 'vitest';
import { storedData } from '../../../server/accounts/data/index.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { until } from '../../rig/until.ts';
import { callerOf } from '../rig/callers.ts';
import { askForCode, mailedCode } from '../rig/mailed-codes.ts';
import {
  administrator,
  everywhere,
  expectRefusal,
  growOld,
  inBrowser,
  loggedIn,
  logIn,
  mailedToken,
  mailsSettled,
  onBothProcesses,
  PASSWORD,
  sessionIn,
} from '../rig/scenario.ts';

/** Users can export all data stored about their account. */

const hex = (n: number) => n.toString(16).padStart(12, '0');

/** Mails of a kind to one address in an hour. */
const MAILS = 2;

everywhere(
  (scenario) => {
    const mailsIn = async (session: string) =>
      (await scenario().call('account.export', undefined, { session })).data.mails;

    // checks: 37
    test('the export contains all data of the user and no secrets', async () => {
      const { call, stack } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      await stack.database(
        'insert into identities (id, user_id, issuer, subject, provider, proven, created_at) values (?, ?, ?, ?, ?, ?, ?)',
        [`identity-${person.id.slice(-20)}`, person.id, 'https://id.example.test', person.id, 'acme', 1, 5000],
      );
      await call('profile.update', { bio: 'Notes on the Analytical Engine' }, { session });
      const file = { filename: 'a.png', contentType: 'image/png', size: 10 };
      const { data: address } = await call('upload.presign', file, { session });
      const reply = await call('account.export', undefined, { session });
      expect(reply.status).toBe(200);
      expect(Object.keys(reply.data)).toEqual(Object.keys(storedData));
      expect(reply.data).toMatchObject({
        profile: {
          id: person.id,
          email: person.email,
          name: person.name,
          bio: 'Notes on the Analytical Engine',
          website: null,
          emailVerified: true,
        },
        identities: [{ issuer: 'https://id.example.test', provider: 'acme', proven: true, createdAt: 5 }],
        sessions: [{ method: 'password', expiresAt: expect.any(Number) }],
        mails: [{ kind: 'verify-email', email: person.email, state: 'sent' }],
        uploads: [{ objectKey: address.key, size: 10, state: 'expected', url: address.publicUrl }],
      });
      expect(Math.abs(reply.data.profile.createdAt - Date.now() / 1000)).toBeLessThan(60);
      expect(reply.data.activity.map(({ kind }: { kind: string }) => kind)).toEqual([
        'registered',
        'verified',
        'logged-in',
        'profile-changed',
      ]);
      expect(reply.data.activity[2].details).toEqual({ method: 'password', session: expect.any(String) });
      const [user] = await stack.database<Record<string, unknown>>('select * from users where id = ?', [person.id]);
      const [row] = await stack.database<Record<string, unknown>>('select * from sessions where user_id = ?', [
        person.id,
      ]);
      for (const secret of [session, user?.['password_hash'], user?.['password_browser'], row?.['token_hash']]) {
        if (secret) expect(JSON.stringify(reply.data)).not.toContain(secret);
      }
      const download = await callerOf('rest', stack.url)('account.export', undefined, { session });
      expect(download.headers.get('content-disposition')).toBe('attachment; filename="account.json"');
      expect(download.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(download.headers.get('cache-control')).toBe('no-store');
    });

    // checks: 49
    test('the export contains no data of others', async () => {
      const { call } = scenario();
      const { session } = await loggedIn(scenario());
      const other = await loggedIn(scenario());
      const { data } = await call('account.export', undefined, { session });
      expect(JSON.stringify(data)).not.toContain(other.id);
      expect(JSON.stringify(data)).not.toContain(other.email);
    });

    // checks: 37, 49
    test('the invitation belongs to the user whose account it created, not to the next one with the address', async () => {
      const { call, stack } = scenario();
      const { session } = await administrator(scenario());
      const ada = { name: 'Ada Lovelace', email: freshEmail(), password: PASSWORD };
      await call('users.invite', { email: ada.email }, { session });
      const invitation = await mailedToken(stack, ada.email, 'register');
      await call('auth.register', { ...ada, invitation });
      const hers = await logIn(call, ada);
      await stack.database('update users set email = ? where email = ?', [freshEmail(), ada.email]);
      const next = await loggedIn(scenario(), { email: ada.email });
      const invited = expect.objectContaining({ kind: 'invitation', email: ada.email, state: 'sent' });
      expect(await mailsIn(hers)).toContainEqual(invited);
      expect(await mailsIn(next.session)).not.toContainEqual(invited);
    });

    // checks: 37
    test('the export contains the mail whose code created the account, and no hash of a code or browser', async () => {
      const { call, stack } = scenario();
      const [email, changed] = [freshEmail(), freshEmail()];
      const pending = await askForCode(call, email);
      const reply = await call('auth.finishEmailCode', { code: await mailedCode(stack, email) }, { pending });
      const session = sessionIn(reply) ?? '';
      await call('account.changeEmail', { email: changed }, inBrowser(session));
      await mailsSettled(stack, changed);
      expect(await mailsIn(session)).toMatchObject([
        { kind: 'email-code', email, detail: null, state: 'sent' },
        { kind: 'confirm-email', email: changed, detail: null, state: 'sent' },
      ]);
      const stored = await stack.database('select id from outbox where user_id = ? and detail is not null', [
        reply.data.user.id,
      ]);
      expect(stored).toHaveLength(2);
    });

    // checks: 37
    test.each([
      ['reset-password', 'auth.forgotPassword'],
      ['email-code', 'auth.beginEmailCode'],
    ] as const)('the export contains requests for mails past the limit: %s', async (kind, procedure) => {
      const { call, stack } = scenario();
      const { session, email } = await loggedIn(scenario());
      for (let i = 0; i <= MAILS; i++) await call(procedure, { email });
      await mailsSettled(stack, email);
      const mails: { kind: string; state: string }[] = await mailsIn(session);
      const states = mails.filter((mail) => mail.kind === kind).map(({ state }) => state);
      expect(states.sort()).toEqual(['dropped', ...Array(MAILS).fill('sent')]);
    });

    // checks: 49
    test('the export requires a session with a recent credential, and is limited to ten an hour', async () => {
      const { call, stack } = scenario();
      const { session, id } = await loggedIn(scenario());
      expectRefusal(await call('account.export'), 401, 'UNAUTHENTICATED');
      await growOld(stack, id);
      expectRefusal(await call('account.export', undefined, { session }), 403, 'REAUTHENTICATION_REQUIRED');
      await stack.database('update sessions set authenticated_at = created_at where user_id = ?', [id]);
      for (let i = 0; i < 10; i++) expect((await call('account.export', undefined, { session })).status).toBe(200);
      expectRefusal(await call('account.export', undefined, { session }), 429, 'RATE_LIMITED');
    });
  },
  { env: { EMAIL_CODES: 'on', LIMIT_MAIL: `${MAILS}/3600` } },
);

const EVENTS = 100_000;
const UPLOADS = 10_000;

/** Inserts this many events and uploads of a user. */
async function giveMuch({ database }: Stack, userId: string): Promise<void> {
  const rows = async (most: number, insert: (from: number, to: number) => Promise<unknown>) => {
    for (let from = 0; from < most; from += 1000) await insert(from, from + 1000);
  };
  const list = (from: number, to: number, row: (n: number) => string) =>
    Array.from({ length: to - from }, (_, i) => row(from + i)).join(', ');
  const part = userId.slice(-12);
  await rows(EVENTS, (from, to) =>
    database(
      `insert into activity (id, user_id, kind, actor, address, device, request_id, created_at) values ${list(
        from,
        to,
        (n) =>
          `('0${part.slice(1)}-${hex(n)}', '${userId}', 'logged-in', 'user', '203.0.113.7', 'Firefox on Linux', 'r', 1)`,
      )}`,
    ),
  );
  await rows(UPLOADS, (from, to) =>
    database(
      `insert into uploads (object_key, user_id, purpose, content_type, size, state, expires_at, created_at) values ${list(
        from,
        to,
        (n) => `('uploads/${part}-${hex(n)}.png', '${userId}', 'direct', 'image/png', 0, 'kept', 1, 1)`,
      )}`,
    ),
  );
}

onBothProcesses((stack) => {
  const memoryMb = () =>
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${stack().services[0]?.pid}/status`, 'utf8'))?.[1]) / 1024;

  /** The answer in pieces: `onText` may wait. Rejects if it breaks off. */
  const read = (session: string, onText: (text: string) => Promise<void> | void): Promise<void> =>
    new Promise((resolve, reject) => {
      const headers = { cookie: `auth_session=${session}` };
      const sent = request(`${stack().url}/api/account/export`, { headers }, async (answer) => {
        try {
          for await (const piece of answer.setEncoding('utf8')) await onText(piece);
          resolve();
        } catch (error) {
          reject(error);
        }
      });
      sent.on('error', reject).end();
    });

  test('100,000 events and 10,000 uploads are streamed in bounded memory; tRPC refuses them as too large', async () => {
    const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
    const { session, id } = await loggedIn(scenario);
    await read(session, () => undefined);
    await giveMuch(stack(), id);
    const before = memoryMb();
    let most = 0;
    let text = '';
    await read(session, (piece) => {
      text += piece;
      most = Math.max(most, memoryMb());
    });
    const document = JSON.parse(text);
    expect(document.activity).toHaveLength(EVENTS + 3);
    expect(document.uploads).toHaveLength(UPLOADS);
    expect(new Set(document.uploads.map(({ objectKey }: { objectKey: string }) => objectKey)).size).toBe(UPLOADS);
    console.log(`an export of ${Math.round(text.length / 1e6)} MB: memory +${Math.round(most - before)} MB`);
    // Uncollected garbage differs between machines; all rows and their text at once take 130.
    expect(most - before).toBeLessThan(100);
    const refused = await callerOf('trpc', stack().url)('account.export', undefined, { session });
    expectRefusal(refused, 413, 'PAYLOAD_TOO_LARGE');

    // A failure after the answer has started.
    let isBegun = false;
    const resumed = Promise.withResolvers<void>();
    const broken = read(session, async () => {
      isBegun = true;
      await resumed.promise;
    }).then(
      () => 'whole',
      () => 'broken off',
    );
    await until(() => isBegun);
    await stack().database('alter table uploads rename to uploads_away');
    resumed.resolve();
    expect(await broken).toBe('broken off');
    await stack().database('alter table uploads_away rename to uploads');
    expect((await scenario.call('profile.get', undefined, { session })).status).toBe(200);
  });
});
