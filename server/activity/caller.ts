import type { Language } from '../shared/texts/languages.ts';

/** Who acts on an account: its user, an administrator, an operator at the command line, or another service, by name. */
export type Actor = 'user' | 'administrator' | 'operator' | `service:${string}`;

/** `actorId`: the user id of an administrator. */
export type Acting =
  | { actor: 'administrator'; actorId: string }
  | { actor: Exclude<Actor, 'administrator'>; actorId?: never };

/** Who acts on an account, and from where. */
export type Caller = Acting & Request;

interface Request {
  /** Empty without a request, as in a background job. */
  clientAddress: string;
  /** The header User-Agent: untrusted text. */
  userAgent: string;
  /** The id in the log and in the header X-Request-Id. */
  requestId: string;
  /**
   * The language of the user's browser. Undefined if it accepts no supported language, or if the caller is not the
   * user.
   */
  language(): Language | undefined;
}

/** For actions without an HTTP request. */
const noRequest = { clientAddress: '', userAgent: '', requestId: '', language: () => undefined };

/** The background jobs, which complete operations that users have started. */
export const backgroundJob: Caller = { actor: 'user', ...noRequest };

/** `npm run user`, `npm run users:import`. */
export const operator: Caller = { actor: 'operator', ...noRequest };
