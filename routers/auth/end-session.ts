import type { Session } from '../../server/accounts/sessions/index.ts';
import type { Context } from '../context.ts';
import { callerOf } from '../trpc.ts';

/** Ends the session of the request. The cookie is cleared only after that, so that a failed logout can be retried. */
export async function endSession(ctx: Context, session: Session | null): Promise<void> {
  if (session && ctx.sessionToken) await ctx.accounts.sessions.end(ctx.sessionToken, callerOf(ctx));
  ctx.cookies.clearSession();
}
