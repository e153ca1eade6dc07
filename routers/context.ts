import type { Accounts } from '../server/accounts/index.ts';
import type { Uploads } from '../server/uploads/index.ts';

/** What a procedure sees of its request, whichever surface it came in by. Implemented by `server/http/context.ts`. */
export interface Context {
  accounts: Accounts;
  uploads: Uploads;
  /** Where the client is, its IPv6 address in full. */
  clientAddress(): string;
  /** The session token that came along, if it has the shape of one. */
  sessionToken: string | undefined;
  /** The service that called, by its token. Undefined for everybody else, logged in or not. */
  service: string | undefined;
  /** The id of the browser, by its cookie; a fresh one, the same for the whole request, where there is none. */
  browser(): string;
  /** The state of a login through the identity provider that this browser began. */
  stateCookie: string | undefined;
  /** The base address of ours at which the request came; APP_URL where it came to another name. */
  ownUrl(): string;
  cookies: {
    setSession(session: { token: string; expiresAt: number }): void;
    clearSession(): void;
    setState(state: string): void;
    clearState(): void;
    setBrowser(id: string): void;
  };
  /** Who it was, for the log. */
  noteUser(userId: string): void;
  noteService(name: string): void;
  /** Rejects when the database does not answer. */
  pingDatabase(): Promise<void>;
  /** Another status for this answer over REST; over /trpc the output alone tells. */
  setStatus(status: number): void;
  version: string;
}
