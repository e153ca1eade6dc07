import type { ProvidedIdentity } from '../../parts/identity-provider/contract.ts';
import type { ProviderName } from '../../shared/method-names.ts';
import type { Entry } from '../login/index.ts';
import type { LoginRequest } from '../sessions/index.ts';
import type { Flow } from './flows.ts';

/** An identity stated by a provider at the end of a flow. */
export interface ReturnedIdentity {
  identity: ProvidedIdentity;
  flow: Flow;
  provider: ProviderName;
  request: LoginRequest;
}

/** The outcome of a flow. `failed`: the cause is in the log. */
export type FlowOutcome =
  | Entry
  | { result: 'linked' | 'reauthenticated' }
  /** The session's user already has the identity. */
  | { result: 'already-linked' }
  /** `wasOpen`: this browser had begun the flow, which is now closed. */
  | { result: 'cancelled'; wasOpen: boolean }
  | {
      result: 'failed' | 'email-unverified' | 'verification-sent' | 'deleted' | 'blocked' | 'no-account' | 'not-linked';
    }
  /** The registration policy allows no account with the address. */
  | { result: 'registration-closed' }
  /** The identity is linked to another account, or is not one of the session's user. */
  | { result: 'identity-taken' | 'identity-mismatch' }
  /** The provider does not prove a login since the flow began. */
  | { result: 'not-fresh' }
  /** The session in which the flow began has ended. */
  | { result: 'session-ended' };

export interface Invited {
  /** The target of the invitation that admitted a new user. Check it again with `returnAddress`. */
  invitedTo?: string | null | undefined;
}

/** `page` and, after success, `returnTo` or else `invitedTo` replace the pages of the purpose. */
export type FlowEnd = FlowOutcome & Invited & Pick<Flow, 'purpose' | 'page' | 'returnTo'>;
