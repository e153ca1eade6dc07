import type { Language } from '../texts/languages.ts';

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
  /** The language of the user's browser. Undefined where it asks for none of ours, and where the user is not the caller. */
  language(): Language | undefined;
}

/** What no HTTP request is the cause of. */
const noRequest = { clientAddress: '', userAgent: '', requestId: '', language: () => undefined };

/** The background jobs, which complete what a user has begun. */
export const backgroundJob: Caller = { actor: 'user', ...noRequest };

/** `npm run user`, `npm run users:import`. */
export const operator: Caller = { actor: 'operator', ...noRequest };
