/**
 * Who does something to an account: its user, an administrator, an operator at the command line, or another service by its
 * name.
 */
export type Actor = 'user' | 'administrator' | 'operator' | `service:${string}`;

/** Who does something to an account, and from where. */
export interface Caller {
  actor: Actor;
  /** The user id of an administrator. */
  actorId?: string;
  /** Empty where no request is the cause, as in a background job. */
  clientAddress: string;
  /** The header User-Agent, anybody's text. */
  userAgent: string;
  /** As in the log and in the header X-Request-Id. */
  requestId: string;
}

/** What no HTTP request is the cause of. */
const noRequest = { clientAddress: '', userAgent: '', requestId: '' };

/** The background jobs, which complete what a user has begun. */
export const backgroundJob: Caller = { actor: 'user', ...noRequest };

/** `npm run user`, `npm run users:import`. */
export const operator: Caller = { actor: 'operator', ...noRequest };
