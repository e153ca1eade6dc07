/*
 * Public reads are limited per client address if LIMIT_READ is set; each call of a batch counts. Their contract is that
 * of `full` also with `without-email`, which only omits `email`: typed front ends need no change.
 */

import { ServiceError } from '../../server/errors.ts';
import type { Context } from '../context.ts';
import { currentSession, publicProcedure } from '../trpc.ts';

/** The result of the public reads: one user, or a page of users. */
interface Answer {
  data: object | object[];
}

/**
 * The public reads of users, restricted by PUBLIC_USERS: `session` rejects other callers with UNAUTHENTICATED, `off`
 * all but administrators with NOT_FOUND, over REST and tRPC.
 */
export const publicRead = publicProcedure.use(async ({ ctx, next }) => {
  const { limits, accounts } = ctx;
  const { publicUsers } = accounts.users;
  await limits.enforce('read', ctx.clientAddress());
  if (publicUsers === 'full') return next();
  if (publicUsers !== 'without-email') await requireReader(ctx, publicUsers);
  const answered = await next();
  return answered.ok && publicUsers === 'without-email'
    ? { ...answered, data: withoutEmails(answered.data as Answer) }
    : answered;
});

async function requireReader(ctx: Context, who: 'session' | 'off'): Promise<void> {
  // `off` tells a key no more than nobody.
  const session = who === 'off' && ctx.sessionToken === undefined ? null : await currentSession(ctx);
  if (who === 'off' && session?.user.role !== 'admin') throw new ServiceError('NOT_FOUND');
  if (!session) throw new ServiceError('UNAUTHENTICATED');
}

const withoutEmails = ({ data, ...page }: Answer): Answer => ({
  data: Array.isArray(data) ? data.map(withoutEmail) : withoutEmail(data),
  ...page,
});

export const withoutEmail = (user: object) =>
  Object.fromEntries(Object.entries(user).filter(([field]) => field !== 'email'));
