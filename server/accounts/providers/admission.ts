import { type Database, retryOnDuplicate } from '../../parts/database/contract.ts';
import type { ProvidedIdentity } from '../../parts/identity-provider/contract.ts';
import { lockUser } from '../users/index.ts';
import {
  type Admission,
  type AdmissionNeeds,
  admitByAddress,
  admitLinked,
  admitNew,
  mayBecomeUser,
  type ProviderLogin,
} from './admission-rules.ts';
import { addressIn, isStorableIdentity, linkedTo } from './identity-keys.ts';

interface Needs extends AdmissionNeeds {
  database: Database;
}

/** Admits identities, each in one transaction. admission-rules.ts decides. */
export const createIdentities = (needs: Needs) => {
  const { database, outbox } = needs;

  /**
   * Locks the user before any decision. Undefined if the link of the identity changes before the lock: another login
   * has linked it, or the owner has removed it.
   */
  const admitOnce = (
    identity: ProvidedIdentity,
    request: Pick<ProviderLogin, 'provider' | 'asker' | 'caller' | 'restores' | 'returnTo'>,
  ): Promise<Admission | undefined> =>
    database.transaction(async (em, tables) => {
      const email = addressIn(identity);
      const login: ProviderLogin = { ...request, em, tables, identity, email };
      const linkedId = await linkedTo(tables, identity);
      if (linkedId !== undefined) {
        const user = await lockUser(em, { id: linkedId });
        const isStillLinked = (await linkedTo(tables, identity)) === user?.id;
        return user && isStillLinked ? admitLinked(needs, login, user) : undefined;
      }
      if (email === undefined) return { result: 'unusable' };
      if (!mayBecomeUser(needs, login)) return { result: 'registration-closed' };
      const user = await lockUser(em, { email });
      if ((await linkedTo(tables, identity)) !== undefined) return undefined;
      if (!user && request.restores) return { result: 'no-account' };
      return user ? admitByAddress(needs, login, user) : admitNew(needs, login, email);
    }, addressIn(identity) ?? identity.subject);

  return {
    /** Finds, claims or creates the user in one transaction. */
    async admit(
      identity: ProvidedIdentity,
      request: Pick<ProviderLogin, 'provider' | 'asker' | 'caller' | 'restores' | 'returnTo'>,
    ): Promise<Admission> {
      if (!isStorableIdentity(identity)) return { result: 'unusable' };
      const admission = await retryOnDuplicate(() => admitOnce(identity, request));
      outbox.wake();
      return admission;
    },
  };
};
