import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { codeOf } from '../../../server/accounts/mail/tokens/derivation.ts';
import { hashOf } from '../../../server/lib/random-token.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import {
  ELSEWHERE,
  type EmbeddedAccounts,
  marksIn,
  openAccounts,
  refused,
  request,
  unverified,
} from '../rig/accounts.ts';

/** Verification of addresses, on embedded parts. */
let service: EmbeddedAccounts;
let limited: EmbeddedAccounts;
beforeAll(async () => {
  service = await openAccounts();
  limited = await openAccounts({ LIMIT_TOKEN: '1/900', LIMIT_MAIL_REQUEST: '1/900', LIMIT_CODE: '2/900' });
});
afterAll(() => Promise.all([service.close(), limited.close()]));
afterEach(() => {
  vi.restoreAllMocks();
});

describe('verification', () => {
  const verify = (of: EmbeddedAccounts, token: string, by = request()) =>
    of.accounts.lifecycle.verification.verifyEmail(token, { request: by, browser: by.browser });

  test('in the browser that registered proves the password, and the device becomes known', async () => {
    const user = await service.insertUser(unverified);
    const { unproven, deviceCookie, returnTo } = await verify(service, await service.linkFor(user, 'verify-email'));
    expect({ unproven, returnTo }).toEqual({ unproven: [], returnTo: '/there' });
    expect(marksIn(deviceCookie)).toBe(1);
    expect(await service.userOf(user.email)).toMatchObject({ emailVerified: true, passwordProven: true });
    expect(await service.eventsOf(user.id)).toEqual([{ kind: 'verified' }]);
  });

  test('in another browser proves nothing, and lists the password', async () => {
    const user = await service.insertUser(unverified);
    const token = await service.linkFor(user, 'verify-email');
    const { unproven, deviceCookie } = await verify(service, token, { ...request(), browser: ELSEWHERE });
    expect(unproven).toEqual([{ method: 'password', addedAt: user.createdAt }]);
    expect(deviceCookie).toBeUndefined();
    expect(await service.userOf(user.email)).toMatchObject({ emailVerified: true, passwordProven: false });
  });

  test('repeated in the browser that registered, a used link still proves its methods, without an event', async () => {
    const user = await service.insertUser(unverified);
    const token = await service.linkFor(user, 'verify-email');
    await verify(service, token, { ...request(), browser: ELSEWHERE });
    expect((await verify(service, token)).unproven).toEqual([]);
    expect(await service.userOf(user.email)).toMatchObject({ passwordProven: true });
    expect(await service.kindsOf(user.id)).toEqual(['verified']);
  });

  test('a used link that has expired proves nothing, and is no error', async () => {
    const user = await service.insertUser(unverified);
    const token = await service.linkFor(user, 'verify-email', { used: 1, expires_at: 1 });
    expect(await verify(service, token)).toEqual({ unproven: [], deviceCookie: undefined, returnTo: '/there' });
    expect(await service.userOf(user.email)).toMatchObject({ passwordProven: false });
  });

  test('an expired link, or one of another purpose, is INVALID_TOKEN and counts as a guess', async () => {
    const user = await limited.insertUser(unverified);
    const by = request();
    const expired = await limited.linkFor(user, 'verify-email', { expires_at: 1 });
    await expect(verify(limited, expired, by)).rejects.toEqual(refused('INVALID_TOKEN'));
    await expect(verify(limited, expired, by)).rejects.toEqual(refused('RATE_LIMITED'));
    const other = await limited.linkFor(user, 'reset-password');
    await expect(verify(limited, other)).rejects.toEqual(refused('INVALID_TOKEN'));
    expect(await limited.userOf(user.email)).toMatchObject({ emailVerified: false });
  });

  test('another mail can be requested, as often as the client may', async () => {
    const by = request();
    const resend = (email: string) => limited.accounts.lifecycle.verification.resendVerification(email, '/there', by);
    const email = freshEmail();
    await resend(email);
    await expect(resend(email)).rejects.toEqual(refused('RATE_LIMITED'));
    expect(await limited.mailKindsTo(email)).toEqual(['verify-email']);
    const targets = limited.database.query((tables) => tables.selectFrom('mail_targets').select('return_to').execute());
    expect(await targets).toEqual([{ return_to: '/there' }]);
  });
});

describe('a verification code', () => {
  const give = (of: EmbeddedAccounts, code: string, by = request()) =>
    of.accounts.lifecycle.verification.verifyCode(code, { request: by, browser: by.browser });
  /** A browser that has registered an account, the mailed code and a wrong one. */
  const registered = async (of: EmbeddedAccounts) => {
    const own = randomBytes(32).toString('base64url');
    const user = await of.insertUser((stored) => {
      unverified(stored);
      stored.passwordBrowser = hashOf(own);
    });
    const code = codeOf(await of.linkFor(user, 'verify-email'));
    return { user, by: { ...request(), browser: own }, code, wrong: code === '000000' ? '000001' : '000000' };
  };

  test('verifies as the link does, in the browser that registered only', async () => {
    const { user, by, code } = await registered(service);
    await expect(give(service, code)).rejects.toEqual(refused('INVALID_CODE'));
    expect(await give(service, code, by)).toMatchObject({ unproven: [], returnTo: '/there' });
    expect(await service.userOf(user.email)).toMatchObject({ emailVerified: true, passwordProven: true });
  });

  test('is looked at five times', async () => {
    const [lucky, late] = [await registered(service), await registered(service)];
    for (const { by, wrong } of [lucky, late])
      for (let guess = 1; guess < 5; guess++)
        await expect(give(service, wrong, by)).rejects.toEqual(refused('INVALID_CODE'));
    await give(service, lucky.code, lucky.by);
    await expect(give(service, late.wrong, late.by)).rejects.toEqual(refused('INVALID_CODE'));
    await expect(give(service, late.code, late.by)).rejects.toEqual(refused('INVALID_CODE'));
  });

  test('counts per account if it is wrong, and per client as a refused link', async () => {
    const { by, code, wrong } = await registered(limited);
    const from = () => ({ ...by, clientAddress: request().clientAddress });
    const first = from();
    await expect(give(limited, wrong, first)).rejects.toEqual(refused('INVALID_CODE'));
    await expect(give(limited, code, request({ clientAddress: first.clientAddress }))).rejects.toEqual(
      refused('RATE_LIMITED'),
    );
    await expect(give(limited, wrong, from())).rejects.toEqual(refused('INVALID_CODE'));
    await expect(give(limited, code, from())).rejects.toEqual(refused('RATE_LIMITED'));
  });
});
