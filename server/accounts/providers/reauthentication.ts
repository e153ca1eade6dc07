import { ServiceError } from '../errors.ts';
import type { IdentityProvider } from '../parts/identity-provider/contract.ts';
import type { Deps } from './deps.ts';
import type { FlowOutcome, ReturnedIdentity } from './flow-outcomes.ts';
import { linkedTo } from './identity-keys.ts';
import type { SecondFactors } from './second-factors.ts';

/** How far the clocks of a provider and of this service may differ. */
const SKEW_MS = 30_000;

interface Parts {
  secondFactors: Pick<SecondFactors, 'factorsOf'>;
  identityProviders: ReadonlyMap<string, IdentityProvider>;
}

/**
 * The user of a session has logged in at a provider again, with an identity of the account, since the flow began: the
 * session counts as one in which a credential was given now. Where a login takes a second factor, so does this, unless the
 * provider is trusted to have asked for one.
 */
export const createProviderReauthentication =
  ({ database, sessions }: Pick<Deps, 'database' | 'sessions'>, { secondFactors, identityProviders }: Parts) =>
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
