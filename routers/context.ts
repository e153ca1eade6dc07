import type { Access } from '../server/access/index.ts';
import type { Accounts } from '../server/accounts/index.ts';
import type { Session } from '../server/accounts/sessions/index.ts';
import type { Applications } from '../server/applications/index.ts';
import type { Challenges } from '../server/challenge/index.ts';
import type { Events } from '../server/events/index.ts';
import type { Credential } from '../server/lib/credential.ts';
import type { Limits } from '../server/limits/index.ts';
import type { OAuth } from '../server/oauth/index.ts';
import type { Scope } from '../server/shared/scopes.ts';
import type { Language } from '../server/shared/texts/languages.ts';
import type { Uploads } from '../server/uploads/index.ts';
import type { Webhooks } from '../server/webhooks/index.ts';

/** What the procedures call: `createRules` in `server/assemble.ts`. */
export interface Rules {
  accounts: Accounts;
  access: Access;
  applications: Applications;
  /** Undefined with CHALLENGE=off. */
  challenges: Challenges | undefined;
  oauth: OAuth;
  events: Events;
  limits: Limits;
  uploads: Uploads;
  webhooks: Webhooks;
}

/** A procedure's view of its request over REST or tRPC, one per call. Implemented by `server/http/context.ts`. */
export interface Context extends Rules {
  /** The client's IP address, an IPv6 address in full. */
  clientAddress(): string;
  /** The header Challenge-Solution, untrusted text; empty if missing. */
  challengeSolution(): string;
  /** The header Expected-User, untrusted text: the id of the user for whom the caller acts; empty if missing. */
  expectedUser(): string;
  /** The header User-Agent, untrusted text; empty if missing. */
  userAgent(): string;
  /** The language chosen in the browser, else the first supported one of Accept-Language; undefined without any. */
  language(): Language | undefined;
  /** The id in the log and in X-Request-Id. */
  requestId(): string;
  /** The session token of the request, if well-formed. Throws VALIDATION_FAILED if there is a credential too. */
  sessionToken: string | undefined;
  /** The bearer credential of the request, or its token with a proof. */
  credential: Credential | undefined;
  /** The caller's session, set by `sessionProcedure`. */
  session: Session | undefined;
  /** What the caller's access key or token allows. Undefined in a session, which allows everything. */
  scopes: readonly Scope[] | undefined;
  /** The name of the calling service, by its token. Undefined for all other callers, logged in or not. */
  service: string | undefined;
  /** The id of the browser from its cookie; without a cookie a new one, the same for all calls of a request. */
  browser(): string;
  /** The cookie of the device, if well-formed. */
  deviceCookie: string | undefined;
  /** The token of this browser's login that waits for its second factor, if well-formed. */
  pendingLogin: string | undefined;
  /** The state of a login through this provider that this browser began. */
  stateCookie(provider: string): string | undefined;
  /** True if the user navigated from one of our pages: `isAskedOnOurPages` in `server/http/security.ts`. */
  isAskedOnOurPages(): boolean;
  /** True if the browser loads the address as a page, not in a frame or for another page. True for other clients. */
  isPage(): boolean;
  /** True if a browser shows the response to its user (header Sec-Fetch-Mode). */
  isNavigation(): boolean;
  /** Where a login through a provider ends without `returnTo`: a page of ours, or APP_HOME_URL if we serve no pages. */
  endOfLogin(): string;
  /** Our base URL to which the request was sent; APP_URL for an unknown Host. */
  ownUrl(): string;
  /**
   * Validates a `returnTo` (`server/shared/return-to.ts`). Undefined unless it is a path, or a URL on an allowed
   * origin.
   */
  returnAddress(asked: string): string | undefined;
  cookies: {
    setSession(session: { token: string; expiresAt: number }): void;
    /** Undoes `setSession`: the browser keeps its cookie. */
    forgetSession(): void;
    clearSession(): void;
    setState(provider: string, state: string): void;
    clearState(provider: string): void;
    setBrowser(id: string): void;
    setDevice(value: string): void;
    setPending(token: string): void;
    clearPending(): void;
  };
  /** Adds the user's id to the log line of the request. */
  setLogUser(userId: string): void;
  setLogService(name: string): void;
  /** Whether the whole request has arrived. */
  hasArrived(): boolean;
  /** Whether the client has disconnected. */
  isGone(): boolean;
  /** Aborted when the client goes away, or the process begins to stop: a call that waits ends. */
  ended(): AbortSignal;
  /** Rejects if the database does not respond. */
  pingDatabase(): Promise<void>;
  /** Sets another status for this response over REST; over /trpc only the output tells it. */
  setStatus(status: number): void;
}
