import { TOTP } from 'otpauth';
import { expect } from 'vitest';
import type { Stack } from '../../rig/stack.ts';
import type { Call, Reply } from './callers.ts';
import { loggedIn, type Person, sessionIn } from './scenario.ts';

const PERIOD_MS = 30_000;

/** The authenticator app of a user. */
export interface App {
  secret: string;
  recoveryCodes: string[];
}

export const stepNow = () => Math.floor(Date.now() / PERIOD_MS);

/** The code of the current time step, or of one some steps away. */
export const codeOf = (secret: string, steps = 0): string =>
  new TOTP({ secret }).generate({ timestamp: Date.now() + steps * PERIOD_MS });

/** A code that is wrong in the neighbouring time steps. */
export function wrongCode(secret: string): string {
  const near = [-2, -1, 0, 1, 2].map((steps) => codeOf(secret, steps));
  const codes = ['000000', '111111', '222222', '333333', '444444', '555555'];
  return codes.find((code) => !near.includes(code)) ?? '';
}

/** As if the last code was used long ago. */
export const forgetLastCode = ({ database }: Stack, userId: string) =>
  database('update totps set last_step = 0 where user_id = ?', [userId]);

/**
 * Sets up an app in a recent session, which continues under another token. The first code may be
 * used again.
 */
export async function setUpApp(
  { call, stack }: { call: Call; stack: Stack },
  { id, session }: { id: string; session: string },
): Promise<App & { session: string }> {
  const { secret } = (await call('totp.begin', undefined, { session })).data;
  const reply = await call('totp.enable', { code: codeOf(secret) }, { session });
  expect(reply).toMatchObject({ status: 200, data: { success: true } });
  await forgetLastCode(stack, id);
  return { secret, recoveryCodes: reply.data.recoveryCodes, session: sessionIn(reply) ?? '' };
}

/** A user with an app and a session. */
export async function withApp(scenario: { call: Call; stack: Stack }) {
  const user = await loggedIn(scenario);
  return { ...user, ...(await setUpApp(scenario, user)) };
}

/** The token of a pending login, '' if the answer clears its cookie, undefined otherwise. */
export const pendingIn = ({ setCookies }: Reply): string | undefined =>
  setCookies.map((cookie) => /^auth_pending=([^;]*)/.exec(cookie)?.[1]).find((value) => value !== undefined);

/** The first step: returns the token of the pending login. */
export async function firstStep(call: Call, { email, password }: Person, procedure = 'auth.login'): Promise<string> {
  const reply = await call(procedure, { email, password });
  expect(reply).toMatchObject({ status: 403, code: 'SECOND_FACTOR_REQUIRED' });
  const pending = pendingIn(reply);
  expect(pending).toMatch(/^[A-Za-z0-9_-]{43}$/);
  return pending ?? '';
}
