import { ServiceError } from '../../errors.ts';
import type { Database } from '../../parts/database/contract.ts';
import type { IdentityProvider } from '../../parts/identity-provider/contract.ts';
import type { ProviderName } from '../../shared/method-names.ts';
import type { SecondFactors } from '../login/index.ts';
import type { Sessions } from '../sessions/index.ts';
import { linkedTo } from './identity-keys.ts';
import type { FlowOutcome, ReturnedIdentity } from './outcomes.ts';

/** The tolerated difference between the clocks of a provider and of this service. */
const SKEW_MS = 30_000;

interface Parts {
  database: Pick<Database, 'query'>;
  sessions: Pick<Sessions, 'reauthenticate'>;
  secondFactors: Pick<SecondFactors, 'factorsOf'>;
  identityProviders: ReadonlyMap<ProviderName, IdentityProvider>;
}

/**
 * Reauthentication by a new login at a provider, with an identity of the account, since the flow began. If logins need
 * a second factor, so does this, unless the provider is trusted to require one.
 */
export const createProviderReauthentication =
  ({ database, sessions, secondFactors, identityProviders }: Parts) =>
  async ({ identity, provider, flow, request }: ReturnedIdentity): Promise<FlowOutcome> => {
    const { owner, begunAt } = flow;
    if (!owner) throw new ServiceError('INVALID_STATE');
    const userId = await database.query((tables) => linkedTo(tables, identity));
    if (userId !== owner.userId) return { result: 'identity-mismatch' };
    if (!isBetween(identity.loggedInAt, begunAt - SKEW_MS, Date.now() + SKEW_MS)) return { result: 'not-fresh' };
    const user = { id: owner.userId, sessionEpoch: owner.epoch };
    const isTrusted = identityProviders.get(provider)?.isTrustedForMfa === true;
    if (!isTrusted && (await secondFactors.factorsOf(user)).length > 0) return { result: 'not-fresh' };
    const isAlive = await sessions.reauthenticate(owner.sessionId, user, provider, request);
    return { result: isAlive ? 'reauthenticated' : 'session-ended' };
  };

/** A provider that states no time proves nothing. */
const isBetween = (time: number | undefined, earliest: number, latest: number) =>
  time !== undefined && time >= earliest && time <= latest;
