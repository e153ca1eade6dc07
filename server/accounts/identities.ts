import { unavailable } from '../errors.ts';
import { type AllTables, isDuplicate } from '../parts/database/contract.ts';
import type { ProvidedIdentity } from '../parts/identity-provider/contract.ts';
import type { Deps } from './deps.ts';
import { type Admission, type Arrival, admitByAddress, admitLinked, admitNew } from './identity-rules.ts';
import { isMailAddress, normalizeEmail } from './text-rules.ts';
import { lockUser } from './users.ts';

/** How often one login is tried while concurrent logins are first. */
const ATTEMPTS = 5;

/**
 * Whether an issuer or subject can be stored: no two become equal by a trailing space or a letter that the column
 * lacks.
 */
const isKey = (text: string) => /^[!-~](?:[ -~]{0,253}[!-~])?$/.test(text);

const addressIn = ({ email }: ProvidedIdentity) =>
  email !== undefined && isMailAddress(email) ? normalizeEmail(email) : undefined;

/** The id of the user that an identity is linked to. */
async function linkedTo(tables: AllTables, { issuer, subject }: ProvidedIdentity): Promise<string | undefined> {
  const identity = await tables
    .selectFrom('identities')
    .select('user_id')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst();
  return identity?.user_id;
}

/** Logs identities in: one transaction each, in which identity-rules.ts decides. */
export const createIdentities = (deps: Deps) => {
  const { database, outbox } = deps;

  /**
   * Locks the user before anything is decided. Undefined if the identity's link differs before and after the lock:
   * another login has linked this identity meanwhile, or the account's owner has removed it.
   */
  const admitOnce = (
    identity: ProvidedIdentity,
    { provider, browser }: Pick<Arrival, 'provider' | 'browser'>,
  ): Promise<Admission | undefined> =>
    database.transaction(async (em, tables) => {
      const email = addressIn(identity);
      const arrival: Arrival = { em, tables, identity, provider, email, browser };
      const linkedId = await linkedTo(tables, identity);
      if (linkedId !== undefined) {
        const user = await lockUser(em, { id: linkedId });
        const isStillLinked = (await linkedTo(tables, identity)) === user?.id;
        return user && isStillLinked ? admitLinked(deps, arrival, user) : undefined;
      }
      if (email === undefined) return { result: 'unusable' };
      const user = await lockUser(em, { email });
      if ((await linkedTo(tables, identity)) !== undefined) return undefined;
      return user ? admitByAddress(deps, arrival, user) : admitNew(deps, arrival, email);
    }, addressIn(identity) ?? identity.subject);

  return {
    /**
     * Finds, claims or creates the user, in one transaction. Of two concurrent logins the lock or a unique key decides
     * which is first; the other tries again and finds what the first has made. `provider` is the provider's name.
     */
    async admit(identity: ProvidedIdentity, request: Pick<Arrival, 'provider' | 'browser'>): Promise<Admission> {
      if (!isKey(identity.issuer) || !isKey(identity.subject)) return { result: 'unusable' };
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const admission = await admitOnce(identity, request).catch(undefinedIfDuplicate);
        if (!admission) continue;
        outbox.wake();
        return admission;
      }
      throw unavailable(new Error('concurrent logins were first each time'));
    },
  };
};

const undefinedIfDuplicate = (error: unknown): undefined => {
  if (!isDuplicate(error)) throw error;
};
