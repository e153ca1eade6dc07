import type { Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import { ServiceError } from '../errors.ts';
import type { Database } from '../parts/database/contract.ts';
import { lockUser, type Users } from './users.ts';

/** How many refused logins an account's activity keeps of an hour, so that a flood fills no disk. */
const KEPT = { most: 20, withinMs: 60 * 60_000 };

/**
 * The most that are recorded at once, so that the database is left to the requests; further ones are left out. Limited ones
 * come at any rate, while each of the others has cost its caller a hash, or a password that was right: the ones keep none of the
 * others out.
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
};

export type RefusalReason = keyof typeof mostAtOnce;

interface Parts {
  database: Database;
  users: Users;
  activity: Activity;
}

/**
 * Records refused logins behind their answers. The work before the first look at the account is the same for every
 * address, so that no answer's duration reveals whether there is one.
 */
export const createLoginRefusals = ({ database, users, activity }: Parts) => {
  const places = { ...mostAtOnce };

  const record = async (email: string, reason: RefusalReason, caller: Caller): Promise<void> => {
    const found = await users.findCredential(email);
    if (!found) return;
    const { id } = found.user;
    const event = { kind: 'login-refused' as const, details: { reason } };
    // Without a lock first: past the bound a flood locks nothing.
    if (await database.query((tables) => activity.hasMost(tables, id, event.kind, KEPT))) return;
    await database.transaction(async (em, tables) => {
      const user = await lockUser(em, { id });
      if (!user || (await activity.hasMost(tables, id, event.kind, KEPT))) return;
      await activity.record(tables, id, event, caller);
    }, id);
  };

  return (email: string, reason: RefusalReason, caller: Caller): void => {
    if (places[reason] === 0) return;
    places[reason]--;
    record(email, reason, caller)
      // The answer is on its way already, and an outage is told of by the requests that need the database.
      .catch(() => undefined)
      .finally(() => places[reason]++);
  };
};

export type LoginRefusals = ReturnType<typeof createLoginRefusals>;

/** Refuses the right credential of a blocked user. */
export function refuseBlocked(recordRefusal: LoginRefusals, email: string, caller: Caller): never {
  recordRefusal(email, 'blocked', caller);
  throw new ServiceError('ACCOUNT_BLOCKED');
}
