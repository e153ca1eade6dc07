import type { ProvidedIdentity } from '../parts/identity-provider/contract.ts';
import type { Deps } from './deps.ts';
import { addressIn, decide, isStorableIdentity, linkedTo } from './identity-keys.ts';
import {
  type Admission,
  type Arrival,
  admitByAddress,
  admitLinked,
  admitNew,
  mayBecomeUser,
} from './identity-rules.ts';
import { lockUser } from './users.ts';

/** Logs identities in: one transaction each, in which identity-rules.ts decides. */
export const createIdentities = (deps: Deps) => {
  const { database, outbox } = deps;

  /**
   * Locks the user before anything is decided. Undefined if the identity's link differs before and after the lock:
   * another login has linked this identity meanwhile, or the account's owner has removed it.
   */
  const admitOnce = (
    identity: ProvidedIdentity,
    { provider, browser, caller, restores }: Pick<Arrival, 'provider' | 'browser' | 'caller' | 'restores'>,
  ): Promise<Admission | undefined> =>
    database.transaction(async (em, tables) => {
      const email = addressIn(identity);
      const arrival: Arrival = { em, tables, identity, provider, email, browser, caller, restores };
      const linkedId = await linkedTo(tables, identity);
      if (linkedId !== undefined) {
        const user = await lockUser(em, { id: linkedId });
        const isStillLinked = (await linkedTo(tables, identity)) === user?.id;
        return user && isStillLinked ? admitLinked(deps, arrival, user) : undefined;
      }
      if (email === undefined) return { result: 'unusable' };
      if (!mayBecomeUser(deps, arrival)) return { result: 'registration-closed' };
      const user = await lockUser(em, { email });
      if ((await linkedTo(tables, identity)) !== undefined) return undefined;
      if (!user && restores) return { result: 'no-account' };
      return user ? admitByAddress(deps, arrival, user) : admitNew(deps, arrival, email);
    }, addressIn(identity) ?? identity.subject);

  return {
    /** Finds, claims or creates the user, in one transaction. `provider` is the provider's name. */
    async admit(
      identity: ProvidedIdentity,
      request: Pick<Arrival, 'provider' | 'browser' | 'caller' | 'restores'>,
    ): Promise<Admission> {
      if (!isStorableIdentity(identity)) return { result: 'unusable' };
      const admission = await decide(() => admitOnce(identity, request));
      outbox.wake();
      return admission;
    },
  };
};
