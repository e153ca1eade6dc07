import { TOTP } from 'otpauth';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { accountOf } from '../../../server/accounts/users/index.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import { type EmbeddedAccounts, type LoggedIn, openAccounts, refused, refusedField, request } from '../rig/accounts.ts';

/** The authenticator app and its recovery codes, on embedded parts. */
let service: EmbeddedAccounts;
beforeAll(async () => {
  service = await openAccounts({ APP_NAME: 'Wonderland' });
});
afterAll(() => service.close());

const PERIOD_MS = 30_000;
const codeOf = (secret: string, steps = 0) =>
  new TOTP({ secret }).generate({ timestamp: Date.now() + steps * PERIOD_MS });
/** A code that is wrong in the neighbouring time steps. */
const wrongCode = (secret: string) => {
  const near = [-2, -1, 0, 1, 2].map((steps) => codeOf(secret, steps));
  return ['000000', '111111', '222222', '333333', '444444', '555555'].find((code) => !near.includes(code)) ?? '';
};
const app = () => service.accounts.credentials.totp;
const enable = ({ session, token, deviceCookie }: LoggedIn, code: string) =>
  app().enableTotp({ session, token }, code, request({ deviceCookie }));
const use = (who: LoggedIn, code: string) => app().useAppCode(who.session.user, code);

/** A user with an app whose last code was used long ago. */
async function withApp() {
  const who = await service.loggedIn();
  const { secret } = await app().beginTotp(who.session);
  const enabled = await enable(who, codeOf(secret));
  await service.database.write((tables) =>
    tables.updateTable('totps').set({ last_step: 0 }).where('user_id', '=', who.user.id).execute(),
  );
  const session = await service.accounts.sessions.validate(enabled.login.token);
  if (!session) throw new Error('the session is not open');
  return { ...enabled, who: { ...who, session, token: enabled.login.token }, secret };
}

describe('an authenticator app', () => {
  test('shows a secret with the names of service and user', async () => {
    const who = await service.loggedIn();
    const { secret, uri, qr } = await app().beginTotp(who.session);
    expect(secret).toMatch(/^[A-Z2-7]{32}$/);
    const { host, pathname, searchParams } = new URL(uri);
    expect([host, decodeURIComponent(pathname)]).toEqual(['totp', `/Wonderland:${who.user.email}`]);
    expect(Object.fromEntries(searchParams)).toEqual({
      issuer: 'Wonderland',
      secret,
      algorithm: 'SHA1',
      digits: '6',
      period: '30',
    });
    expect(qr).toMatch(/^<svg/);
    expect(await app().totpStatus(who.session.user)).toEqual({ enabledAt: undefined, recoveryCodesLeft: 0 });
  });

  test('is enabled by its first code: the session rotates, others end, and devices are forgotten', async () => {
    const who = await service.loggedIn();
    const other = await service.logIn(who.user);
    const { secret } = await app().beginTotp(who.session);
    const wake = vi.spyOn(service.accounts.mail.outbox, 'wake');
    const { login, recoveryCodes } = await enable(who, codeOf(secret));
    expect(wake).toHaveBeenCalledOnce();
    wake.mockRestore();
    expect(new Set(recoveryCodes).size).toBe(10);
    for (const code of recoveryCodes) expect(code).toMatch(/^(?:[0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$/);
    const open = await Promise.all([who.token, other.token, login.token].map(service.isOpen));
    expect(open).toEqual([false, false, true]);
    const stored = await service.accounts.users.findCredential(who.user.email);
    const knows = (deviceCookie: string | undefined) =>
      service.accounts.sessions.devices.knownBy(stored, { deviceCookie }) !== undefined;
    expect([login.deviceCookie, other.deviceCookie].map(knows)).toEqual([true, false]);
    expect(stored?.hasApp).toBe(true);
    expect((await service.eventsOf(who.user.id)).at(-1)).toEqual({ kind: 'totp-enabled' });
    expect(await service.mailKindsTo(who.user.email)).toContain('totp-enabled');
    const status = await app().totpStatus(who.session.user);
    expect(status).toEqual({ enabledAt: expect.any(Number), recoveryCodesLeft: 10 });
    // The code that enabled it is used.
    expect(await use(who, codeOf(secret))).toBe(false);
  });

  test('a wrong first code leaves the secret waiting, in its session only', async () => {
    const who = await service.loggedIn();
    const other = { ...who, ...(await service.logIn(who.user)) };
    const { secret } = await app().beginTotp(who.session);
    await expect(enable(who, wrongCode(secret))).rejects.toEqual(refused('INVALID_CODE'));
    await expect(enable(other, codeOf(secret))).rejects.toEqual(refused('INVALID_CODE'));
    await enable(who, codeOf(secret));
  });

  test('of two concurrent first codes one enables it', async () => {
    const who = await service.loggedIn();
    const { secret } = await app().beginTotp(who.session);
    const results = await Promise.allSettled([enable(who, codeOf(secret)), enable(who, codeOf(secret))]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  test('needs a session with a row, and only proven login methods', async () => {
    const who = await service.loggedIn();
    const without = { ...who.session, id: undefined };
    await expect(app().beginTotp(without)).rejects.toEqual(refused('UNAUTHENTICATED'));
    const { secret } = await app().beginTotp(who.session);
    await service.addIdentity(who.user);
    await expect(app().beginTotp(who.session)).rejects.toEqual(refusedField('account', 'unproven'));
    await expect(enable(who, codeOf(secret))).rejects.toEqual(refusedField('account', 'unproven'));
    expect((await service.accounts.users.findCredential(who.user.email))?.hasApp).toBe(false);
  });

  test('replaces a former one', async () => {
    const { who, secret: former, recoveryCodes } = await withApp();
    const { secret } = await app().beginTotp(who.session);
    const { recoveryCodes: next } = await enable(who, codeOf(secret));
    expect(next.some((code) => recoveryCodes.includes(code))).toBe(false);
    expect(await use(who, codeOf(former, 1))).toBe(false);
    expect(await use(who, codeOf(secret, 1))).toBe(true);
  });

  test('takes each code once, and no older one', async () => {
    const { who, secret } = await withApp();
    const code = codeOf(secret, 1);
    expect(await Promise.all([use(who, code), use(who, code)])).toContainEqual(false);
    expect(await use(who, code)).toBe(false);
    expect(await use(who, codeOf(secret))).toBe(false);
    expect(await use(await service.loggedIn(), code)).toBe(false);
  });

  test('is disabled with its recovery codes and nothing else, once', async () => {
    const [{ who }, { who: other }] = [await withApp(), await withApp()];
    await service.addIdentity(who.user, (identity) => identity.prove());
    await app().disableTotp(who.session, request());
    expect(await app().totpStatus(who.session.user)).toEqual({ enabledAt: undefined, recoveryCodesLeft: 0 });
    expect((await service.userOf(who.user.email))?.hasPassword).toBe(true);
    expect(await service.rowsOf('identities', who.user)).toHaveLength(1);
    expect((await app().totpStatus(other.session.user)).recoveryCodesLeft).toBe(10);
    expect((await service.eventsOf(who.user.id)).at(-1)).toEqual({ kind: 'totp-disabled' });
    await expect(app().disableTotp(who.session, request())).rejects.toEqual(refused('NOT_FOUND'));
  });
});

describe('recovery codes', () => {
  const recover = ({ session }: LoggedIn, code: string) =>
    service.accounts.credentials.useRecoveryCode(session.user, code, request());

  test('work once each, and a mail tells how many are left', async () => {
    const { who, recoveryCodes } = await withApp();
    const [first = '', second = ''] = recoveryCodes;
    expect(await recover(who, first)).toBe(true);
    expect(await recover(who, first)).toBe(false);
    expect((await service.eventsOf(who.user.id)).at(-1)).toEqual({ kind: 'recovery-code-used', left: '9' });
    expect(await service.mailKindsTo(who.user.email)).toContain('recovery-code-used');
    const both = await Promise.all([recover(who, second), recover(who, second)]);
    expect(both.sort()).toEqual([false, true]);
    expect((await app().totpStatus(who.session.user)).recoveryCodesLeft).toBe(8);
  });

  test.each<[string, (code: string) => string]>([
    ['in capitals', (code) => code.toUpperCase()],
    ['without separators', (code) => code.replaceAll('-', '')],
    ['with spaces', (code) => code.replaceAll('-', ' ')],
    ['with look-alike letters', (code) => code.replaceAll('0', 'O').replace('1', 'l').replaceAll('1', 'I')],
  ])('are accepted %s', async (_how, spelled) => {
    const { who, recoveryCodes } = await withApp();
    const code = recoveryCodes.find((one) => /0/.test(one) && /1.*1/.test(one)) ?? recoveryCodes[0] ?? '';
    expect(await recover(who, spelled(code))).toBe(true);
  });

  test('are of no use to others, or once all sessions have ended', async () => {
    const { who, recoveryCodes } = await withApp();
    const { who: other } = await withApp();
    const [code = ''] = recoveryCodes;
    expect(await recover(other, code)).toBe(false);
    await service.accounts.sessions.endAll(who.user.id, request());
    expect(await recover(who, code)).toBe(false);
    expect(await recover({ ...who, session: { ...who.session, user: accountOf(who.user) } }, code)).toBe(false);
  });

  test('are replaced on request, with an app only', async () => {
    const { who, recoveryCodes } = await withApp();
    const next = await app().renewRecoveryCodes(who.session, request());
    expect(next).toHaveLength(10);
    expect(await recover(who, recoveryCodes[0] ?? '')).toBe(false);
    expect(await recover(who, next[0] ?? '')).toBe(true);
    expect(await service.kindsOf(who.user.id)).toContain('recovery-codes-renewed');
    const { session } = await service.loggedIn((user) => user.changeEmail(freshEmail()));
    await expect(app().renewRecoveryCodes(session, request())).rejects.toEqual(refused('NOT_FOUND'));
  });
});
