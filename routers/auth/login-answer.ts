import { z } from 'zod';
import { type Entry, secondFactorRequired } from '../../server/accounts/login/index.ts';
import type { Login, RotatedSession } from '../../server/accounts/sessions/index.ts';
import type { Context } from '../context.ts';
import { answer, done } from '../schemas/done.ts';

/** The response of every login. */
export const loggedIn = done.extend({
  user: z.object({ id: z.string(), email: z.string(), name: z.string(), provider: z.string() }),
});

/** Sets the cookies of a new session. */
export function setLogin(ctx: Context, login: Login): void {
  ctx.cookies.setSession(login);
  ctx.cookies.setDevice(login.deviceCookie);
  ctx.setLogUser(login.user.id);
}

/** Sets the cookies of the caller's session under its rotated token. */
export function setRotated(ctx: Context, session: RotatedSession): void {
  ctx.cookies.setSession(session);
  if (session.deviceCookie !== undefined) ctx.cookies.setDevice(session.deviceCookie);
}

/** Sets the cookies of a login and returns its user, or throws SECOND_FACTOR_REQUIRED. */
export function answerLogin(ctx: Context, entry: Entry, message = 'You are logged in.'): z.output<typeof loggedIn> {
  if (entry.result === 'second-factor') {
    ctx.cookies.setPending(entry.pending.token);
    throw secondFactorRequired(entry.pending.factors);
  }
  const { id, email, name, provider } = entry.login.user;
  setLogin(ctx, entry.login);
  return { ...answer(message), user: { id, email, name, provider } };
}
