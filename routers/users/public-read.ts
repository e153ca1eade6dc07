import { ServiceError } from '../server/errors.ts';
import type { Context } from './context.ts';
import { currentSession, publicProcedure } from './trpc.ts';

/** What the public reads answer: one user, or a page of them. */
interface Answer {
  data: object | object[];
}

/**
 * The public reads of users, as PUBLIC_USERS has them. Limited per client address if LIMIT_READ is set; each call of a batch
 * counts. Their contract is that of `full`, also with `without-email`, which only leaves `email` out of each answer: front ends
 * that are typed against the contract stay as they are. Rejects with UNAUTHENTICATED for `session`; for `off` with NOT_FOUND, over
 * both surfaces, to all but administrators.
 */
export const publicRead = publicProcedure.use(async ({ ctx, next }) => {
  const { limits, publicUsers } = ctx.accounts;
  await limits.enforce('read', ctx.clientAddress());
  if (publicUsers === 'full') return next();
  if (publicUsers !== 'without-email') await requireReader(ctx, publicUsers);
  const answered = await next();
  return answered.ok && publicUsers === 'without-email'
    ? { ...answered, data: withoutEmails(answered.data as Answer) }
    : answered;
});

async function requireReader(ctx: Context, who: 'session' | 'off'): Promise<void> {
  const session = await currentSession(ctx);
  if (who === 'off' && session?.user.role !== 'admin') throw new ServiceError('NOT_FOUND');
  if (!session) throw new ServiceError('UNAUTHENTICATED');
}

const withoutEmails = ({ data, ...page }: Answer): Answer => ({
  data: Array.isArray(data) ? data.map(withoutEmail) : withoutEmail(data),
  ...page,
});

const withoutEmail = (user: object) => Object.fromEntries(Object.entries(user).filter(([field]) => field !== 'email'));
