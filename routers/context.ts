import type { Accounts } from '../server/accounts/index.ts';
import type { Session } from '../server/accounts/sessions.ts';
import type { Language } from '../server/texts/languages.ts';
import type { Uploads } from '../server/uploads/index.ts';

/** A procedure's view of its request, over REST or over tRPC: one for each call. Implemented by `server/http/context.ts`. */
export interface Context {
  accounts: Accounts;
  uploads: Uploads;
  /** The client's IP address, an IPv6 address in full. */
  clientAddress(): string;
  /** The header User-Agent, anybody's text; empty without one. */
  userAgent(): string;
  /** The language chosen in the browser, else the first of ours that it asks for; undefined where it asks for none of them. */
  language(): Language | undefined;
  /** As in the log and in X-Request-Id. */
  requestId(): string;
  /** The session token that the request carried, if it has the shape of one. */
  sessionToken: string | undefined;
  /** The caller's session, once `sessionProcedure` has found it. */
  session: Session | undefined;
  /** The name of the calling service, by its token. Undefined for all other callers, logged in or not. */
  service: string | undefined;
  /** The id of the browser, from its cookie; without a cookie a fresh one, the same for all calls of a request. */
  browser(): string;
  /** The cookie of the device, if it has the shape of one. */
  deviceCookie: string | undefined;
  /** The token of the login of this browser that waits for its second factor, if it has the shape of one. */
  pendingLogin: string | undefined;
  /** The state of a login through this provider that this browser began. */
  stateCookie(provider: string): string | undefined;
  /** Whether one of our own pages, a front end of ours or a program sent the request: no page of another site. */
  isFromOurPages(): boolean;
  /** Whether a browser shows the answer to its user, by the header Sec-Fetch-Mode. */
  isNavigation(): boolean;
  /** Our base address to which the request was sent; APP_URL where its Host is none of ours. */
  ownUrl(): string;
  /**
   * Where a login may lead, as `server/return-to.ts` decides. Undefined for what is neither a path of ours nor on one of
   * our origins.
   */
  returnAddress(asked: string): string | undefined;
  cookies: {
    setSession(session: { token: string; expiresAt: number }): void;
    clearSession(): void;
    setState(provider: string, state: string): void;
    clearState(provider: string): void;
    setBrowser(id: string): void;
    setDevice(value: string): void;
    setPending(token: string): void;
    clearPending(): void;
  };
  /** Puts the user's id into the log line of the request. */
  setLogUser(userId: string): void;
  setLogService(name: string): void;
  /** Rejects when the database does not answer. */
  pingDatabase(): Promise<void>;
  /** Sets another status for this answer over REST; over /trpc only the output tells it. */
  setStatus(status: number): void;
  version: string;
}
