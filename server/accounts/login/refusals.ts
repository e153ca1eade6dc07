import type { Caller } from '../../activity/caller.ts';
import type { Activity } from '../../activity/index.ts';
import type { DetailsOf } from '../../activity/kinds.ts';
import { ServiceError } from '../../errors.ts';
import type { Database } from '../../parts/database/contract.ts';
import { ignored } from '../../telemetry/background.ts';
import { lockUser, type Users } from '../users/index.ts';

export type RefusalReason = DetailsOf<'login-refused'>['reason'];

/**
 * Refused logins that an account's activity keeps per hour and reason: a flood cannot fill the disk, and refusals that anyone can
 * cause leave room for those that need a right credential.
 */
const KEPT = { most: 20, withinMs: 60 * 60_000 };

/**
 * Maximum concurrent records, to leave the database to requests; further ones are dropped. Rate-limited refusals have
 * a budget of their own.
 */
const mostAtOnce = {
  'wrong-password': 10,
  unverified: 10,
  deleted: 10,
  blocked: 10,
  'wrong-code': 10,
  'wrong-passkey': 10,
  'cloned-passkey': 10,
  limited: 2,
} satisfies Record<RefusalReason, number>;

interface Parts {
  database: Database;
  users: Pick<Users, 'findCredential'>;
  activity: Activity;
}

/**
 * Records refused logins after the response. The work before the first account lookup is equal for every address, so
 * response times do not reveal accounts.
 */
export const createLoginRefusals = ({ database, users, activity }: Parts) => {
  const places = { ...mostAtOnce };

  const record = async (email: string, reason: RefusalReason, caller: Caller): Promise<void> => {
    const found = await users.findCredential(email);
    if (!found) return;
    const { id } = found.user;
    const event = { kind: 'login-refused' as const, details: { reason } };
    const kept = { ...KEPT, details: event.details };
    // Checks without a lock first: past the limit a flood takes no locks.
    if (await database.query((tables) => activity.hasMost(tables, id, event.kind, kept))) return;
    await database.transaction(async (em, tables) => {
      const user = await lockUser(em, { id });
      if (!user || (await activity.hasMost(tables, id, event.kind, kept))) return;
      await activity.record(tables, id, event, caller);
    }, id);
  };

  return (email: string, reason: RefusalReason, caller: Caller): void => {
    if (places[reason] === 0) return;
    places[reason]--;
    record(email, reason, caller)
      .catch(ignored('record_refused_login'))
      .finally(() => places[reason]++);
  };
};

export type LoginRefusals = ReturnType<typeof createLoginRefusals>;

/** Refuses the right credential of a blocked user. */
export function refuseBlocked(recordRefusal: LoginRefusals, email: string, caller: Caller): never {
  recordRefusal(email, 'blocked', caller);
  throw new ServiceError('ACCOUNT_BLOCKED');
}
