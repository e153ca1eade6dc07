import { z } from 'zod';
import type { Entry } from '../server/accounts/login-steps.ts';
import { secondFactorRequired } from '../server/accounts/second-factors.ts';
import type { Login } from '../server/accounts/sessions.ts';
import type { Context } from './context.ts';
import { answer, done } from './done.ts';

/** What every login answers. */
export const loggedIn = done.extend({
  user: z.object({ id: z.string(), email: z.string(), name: z.string(), provider: z.string() }),
});

/** Sets the cookies of a session that was just opened. */
export function setLogin(ctx: Context, login: Login): void {
  ctx.cookies.setSession(login);
  ctx.cookies.setDevice(login.deviceCookie);
  ctx.setLogUser(login.user.id);
}

/** Sets the cookies of a login, and answers whose it is; or refuses with SECOND_FACTOR_REQUIRED. */
export function answerLogin(ctx: Context, entry: Entry, message = 'You are logged in.'): z.output<typeof loggedIn> {
  if (entry.result === 'second-factor') {
    ctx.cookies.setPending(entry.pending.token);
    throw secondFactorRequired(entry.pending.factors);
  }
  const { id, email, name, provider } = entry.login.user;
  setLogin(ctx, entry.login);
  return { ...answer(message), user: { id, email, name, provider } };
}
