import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Provider } from 'oidc-provider';
import type { Accounts } from '../accounts/index.ts';
import type { Activity } from '../activity/index.ts';
import type { Applications } from '../applications/index.ts';
import type { Config } from '../config/index.ts';
import type { Proof } from '../lib/credential.ts';
import { isToken } from '../lib/random-token.ts';
import type { Limits } from '../limits/index.ts';
import { type Database, sql } from '../parts/database/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import type { Secrets } from '../secrets.ts';
import type { Log } from '../telemetry/log.ts';
import { createHousekeeping } from '../workers/housekeeping.ts';
import { deleteGrants, deleteInBatches } from '../workers/sweep.ts';
import { createAccess } from './access.ts';
import { createAuthorizations } from './authorizations.ts';
import { createDevices } from './devices.ts';
import { createProofs } from './dpop.ts';
import { among, createGrants, sweepGrants, wordsIn } from './grants.ts';
import { createSigningKeys } from './keys.ts';
import { createLogoutTokens } from './logout-tokens.ts';
import { type CheckedLogout, checkLogout, type LogoutRequest } from './logouts.ts';
import type { Sender } from './provider.ts';
import { createShownConsents } from './shown-consents.ts';

export type { ListedGrant } from './access.ts';
export type { LogoutMessage } from './logout-tokens.ts';
export { endpointOf, RESUME_COOKIE, resumedIn, routes, startLimitOf } from './paths.ts';

/** How old the keys of a process may be. A new key is published a day before it signs. */
const KEYS_MS = 60_000;
const SEEN_MS = 1000;

/** What an access token allows. Times in milliseconds since 1970. */
interface ResolvedToken {
  userId: string;
  applicationId: string;
  grantId: string;
  scopes: string[];
  issuedAt: number;
  expiresAt: number;
}

interface Parts {
  database: Database;
  store: KeyValueStore;
  activity: Activity;
  accounts: Accounts;
  applications: Applications;
  limits: Limits;
  secrets: Secrets;
  log: Log;
}

/**
 * The OpenID provider by which other applications log in here. It loads its library for the first request while there
 * is an application; without one it does nothing.
 */
export function createOAuth({ appUrl: issuer }: Pick<Config, 'appUrl'>, parts: Parts) {
  const { database, store, activity, accounts, applications, limits, secrets, log } = parts;
  const senders = new WeakMap<IncomingMessage, Sender>();
  const keys = createSigningKeys({ database, secrets });
  const proofs = createProofs(store);
  const grants = createGrants({ issuer, database, activity, mail: accounts.mail });
  let current: { made: number; keyIds: string; provider: Provider } | undefined;

  /** One for each set of keys: the library reads them only when it is made. */
  const make = async (): Promise<Provider> => {
    const published = await keys.published();
    const keyIds = published.map(({ kid }) => kid).join(' ');
    if (current?.keyIds !== keyIds) {
      const { createProvider } = await import('./provider.ts');
      const senderOf = (request: IncomingMessage) => senders.get(request);
      const provider = await createProvider({
        issuer,
        keys: published,
        users: accounts.users,
        senderOf,
        database,
        store,
        grants,
        limits,
        log,
      });
      current = { made: performance.now(), keyIds, provider };
    } else current.made = performance.now();
    housekeeping.begin();
    return current.provider;
  };
  let making: Promise<Provider> | undefined;
  const provider = async (): Promise<Provider> => {
    if (current && performance.now() - current.made < KEYS_MS) return current.provider;
    making ??= make().finally(() => {
      making = undefined;
    });
    return making;
  };

  const consents = createShownConsents(store);
  const common = { grants, sessions: accounts.sessions, consents, findApplication: applications.get };

  const housekeeping = whenUsed(
    createHousekeeping({
      sweeps: [
        () => deleteInBatches(database, 'oauth_artifacts', sql`expires_at < ${database.now}`),
        () => deleteGrants(database, sql`expires_at < ${database.now}`),
        () => sweepGrants(database),
        keys.maintain,
      ],
      log,
    }),
  );

  let seenAt = Number.NEGATIVE_INFINITY;
  /** Whether there is an application, or was a second ago: without one the endpoints do not exist. */
  const isOn = async (): Promise<boolean> => {
    if (performance.now() - seenAt < SEEN_MS) return true;
    const row = await database.query((tables) =>
      tables.selectFrom('applications').select('id').limit(1).executeTakeFirst(),
    );
    if (row !== undefined) seenAt = performance.now();
    return row !== undefined;
  };

  return {
    ...createAuthorizations({ ...common, isOn, provider }),
    ...createDevices({ ...common, store, limits }),
    access: createAccess({ database, activity, ended: housekeeping.begin }),
    rotateKeys: keys.rotate,
    logoutMessages: createLogoutTokens({ database, keys, issuer }).messages,
    checkLogout: async (request: LogoutRequest): Promise<CheckedLogout> =>
      (await isOn()) ? checkLogout(await provider(), request) : {},

    isOn,

    /** Answers a request to an endpoint. */
    async handle(req: IncomingMessage, res: ServerResponse, sender: Sender): Promise<void> {
      senders.set(req, sender);
      await (await provider()).callback()(req, res);
    },

    /**
     * The user and grant of a token for the API of this service. Undefined unless it is valid now. A token that is bound to
     * a key needs a proof with this key, and a bearer token has none. Rejects with UNAUTHENTICATED for an invalid proof.
     */
    async resolveToken(token: string, proof?: Proof): Promise<ResolvedToken | undefined> {
      if (!isToken(token) || !(await isOn())) return undefined;
      const checked = proof && (await proofs.check(proof, token));
      const found = await (await provider()).AccessToken.find(token);
      if (!found?.grantId || found.aud !== issuer || found.jkt !== checked?.thumbprint) return undefined;
      const grant = await grants.find(found.grantId);
      if (!grant) return undefined;
      // Last, so that only the owner of a token occupies the store.
      if (proof && checked) await proofs.use(proof, checked);
      const { id: grantId, userId, applicationId } = grant;
      const { scope, iat, expiration } = found;
      return {
        userId,
        applicationId,
        grantId,
        scopes: wordsIn(among(scope, wordsIn(grant.scopes))),
        issuedAt: iat * 1000,
        expiresAt: (iat + expiration) * 1000,
      };
    },

    worker: { start: housekeeping.start, stop: housekeeping.stop },
  };
}

export type OAuth = ReturnType<typeof createOAuth>;

/** Housekeeping that runs once the process works and there is something to keep. */
function whenUsed({ start, stop }: ReturnType<typeof createHousekeeping>) {
  let [isWorking, isUsed, isRunning] = [false, false, false];
  const run = () => {
    if (!isWorking || !isUsed || isRunning) return;
    isRunning = true;
    start();
  };
  return {
    begin(): void {
      isUsed = true;
      run();
    },
    start(): void {
      isWorking = true;
      run();
    },
    stop,
  };
}
