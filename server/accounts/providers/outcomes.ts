import type { ProvidedIdentity } from '../parts/identity-provider/contract.ts';
import type { Flow } from './login-flows.ts';
import type { Entry } from './login-steps.ts';
import type { LoginRequest } from './sessions.ts';

/** An identity that a provider has stated at the end of a flow. */
export interface ReturnedIdentity {
  identity: ProvidedIdentity;
  flow: Flow;
  /** The name of the provider. */
  provider: string;
  request: LoginRequest;
  /** The id of the browser. */
  browser: string;
}

/** What became of a flow. `failed`: the cause is in the log. */
export type FlowOutcome =
  | Entry
  | { result: 'linked' | 'reauthenticated' }
  /** The session's user has had the identity before. */
  | { result: 'already-linked' }
  /** `wasOpen`: this browser had begun the flow, which is over now. */
  | { result: 'cancelled'; wasOpen: boolean }
  | {
      result: 'failed' | 'email-unverified' | 'verification-sent' | 'deleted' | 'blocked' | 'no-account' | 'not-linked';
    }
  /** The service lets no account be made for the address. */
  | { result: 'registration-closed' }
  /** The identity belongs to another account, or is none of the session's user. */
  | { result: 'identity-taken' | 'identity-mismatch' }
  /** The provider does not prove that the user has logged in there since the flow began. */
  | { result: 'not-fresh' }
  /** The session in which the flow began is over. */
  | { result: 'session-ended' };

/** `page`, and after success `returnTo`: where the browser goes, in place of the pages of the purpose. */
export type FlowEnd = FlowOutcome & Pick<Flow, 'purpose' | 'page' | 'returnTo'>;
