import type { Adapter, AdapterPayload } from 'oidc-provider';
import { backgroundJob } from '../activity/caller.ts';
import type { Limits } from '../limits/index.ts';
import type { Database } from '../parts/database/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import { type ArtifactKind, createArtifacts } from './artifacts.ts';
import { createClients } from './clients.ts';
import { createDeviceCodes } from './device-codes.ts';
import type { FoundGrant, Grants } from './grants.ts';
import { wordsIn } from './grants.ts';
import { isIdentityScope, OFFLINE } from './scopes.ts';
import { createReplayCheck, createShortLived, shortLivedModels } from './short-lived.ts';

const SECOND_MS = 1000;
const toSeconds = (ms: number) => Math.floor(ms / SECOND_MS);

/** What the models of one request share: the library asks for each of them by itself. */
export interface RequestState {
  /** The client address. */
  sender: string;
  /** The grant of the code or refresh token that was found. */
  grant?: FoundGrant;
  /** A search for an access token. */
  accessToken?: Promise<AdapterPayload | undefined>;
  /** The refresh token to replace. */
  replaced?: string;
}

export interface AdapterNeeds {
  database: Database;
  store: KeyValueStore;
  grants: Grants;
  limits: Pick<Limits, 'enforce'>;
  /** Of the request under way. */
  request(): RequestState;
  /** The error of the library for a used code or token. */
  invalidGrant(message: string): Error;
  /** The error of the library for a request that it cannot accept. */
  invalidRequest(message: string): Error;
}

/** Of a pending request, which occupies the store: it has the parameters as they were sent. */
const MAX_REQUEST_LENGTH = 8192;
const isRequest = new Set(['Interaction', 'PushedAuthorizationRequest']);

const unsupported = async (): Promise<never> => {
  throw new Error('the library must not store this model');
};

/** Models that are never written: the base of every adapter. */
const none: Adapter = {
  upsert: unsupported,
  find: async () => undefined,
  findByUid: async () => undefined,
  findByUserCode: async () => undefined,
  consume: unsupported,
  destroy: async () => undefined,
  revokeByGrantId: async () => undefined,
};

/** The storage of each model of the library. */
export function createAdapter(model: string, needs: AdapterNeeds): Adapter {
  const { database, store, grants } = needs;
  if (model === 'Client') return { ...none, find: createClients(database).find };
  // Sessions are ours: that of the library lives for one request.
  if (model === 'Session') return { ...none, upsert: async () => undefined };
  if (model === 'Grant')
    return {
      ...none,
      async find(id) {
        const { grant } = needs.request();
        return toPayload(grant?.id === id ? grant : await grants.find(id));
      },
      destroy: (id) => grants.end(id, backgroundJob),
    };
  if (model === 'AuthorizationCode' || model === 'RefreshToken') return artifactAdapter(model, needs);
  if (model === 'DeviceCode') return deviceCodeAdapter(needs);
  if (model === 'ReplayDetection') {
    const isFirst = createReplayCheck(store);
    const used: AdapterPayload = { exp: Number.MAX_SAFE_INTEGER };
    return { ...none, upsert: async () => undefined, find: async (id) => ((await isFirst(id)) ? undefined : used) };
  }
  if (model === 'ClientCredentials') return clientCredentialsAdapter(needs);
  return shortLivedModels.includes(model) ? shortLivedAdapter(model, needs) : none;
}

function artifactAdapter(
  kind: ArtifactKind,
  { database, grants, limits, request, invalidGrant }: AdapterNeeds,
): Adapter {
  const artifacts = createArtifacts(database, kind);
  /** RFC 9700 section 4.14.2. */
  const refuseUsed = async (): Promise<never> => {
    const { grant } = request();
    if (grant) await grants.end(grant.id, backgroundJob);
    throw invalidGrant('it was already used');
  };
  return {
    ...none,
    async upsert(token, payload, expiresIn = 0) {
      const { sender, replaced, grant } = request();
      const use = { sender, replaced, isUseDue: grant?.isUseDue };
      // In the store, where the library puts the access token next: if the store fails, the former token stays valid.
      if (replaced !== undefined) {
        const shared = `${grant?.userId} ${grant?.applicationId}`;
        await limits.enforce('refresh', { own: grant?.id ?? '', shared });
      }
      const outcome = await artifacts.insert(token, payload, expiresIn * SECOND_MS, use);
      if (outcome === 'already used') await refuseUsed();
      if (outcome === 'grant ended') throw invalidGrant('the grant has ended');
    },
    async find(token) {
      const state = request();
      // Introspection looks for a token of each kind at once.
      if (await state.accessToken) return undefined;
      const found = await artifacts.find(token, state.sender);
      if (found) state.grant = found.grant;
      return found?.payload;
    },
    async consume(token) {
      const state = request();
      // With its successor: the library makes it next, and a crash between the two would end the grant.
      if (kind === 'RefreshToken') state.replaced = token;
      else if (!(await artifacts.consume(token, state.sender))) await refuseUsed();
    },
    // No `destroy` and no `revokeByGrantId`: rows end with their grant. The library destroys a used token while it ends
    // the grant; if only the former succeeded, the token would no longer lead to the grant.
  };
}

function requireShort(payload: AdapterPayload, invalidRequest: AdapterNeeds['invalidRequest']): void {
  if (JSON.stringify(payload).length > MAX_REQUEST_LENGTH) throw invalidRequest('the parameters are too long');
}

function deviceCodeAdapter({ store, grants, invalidGrant, invalidRequest }: AdapterNeeds): Adapter {
  const codes = createDeviceCodes(store);
  return {
    ...none,
    async upsert(code, payload, expiresIn = 0) {
      requireShort(payload, invalidRequest);
      await codes.insert(code, payload, expiresIn * SECOND_MS);
    },
    async find(code) {
      const payload = await codes.find(code);
      if (payload?.grantId === undefined || wordsIn(payload.scope).includes(OFFLINE)) return payload;
      // The grant may have `offline_access` for another device.
      return (await grants.find(payload.grantId))?.hasSession ? payload : undefined;
    },
    async consume(code) {
      if (await codes.use(code)) return;
      const grantId = (await codes.find(code))?.grantId;
      if (grantId !== undefined) await grants.end(grantId, backgroundJob);
      throw invalidGrant('it was already used');
    },
  };
}

function shortLivedAdapter(model: string, { store, request, invalidGrant, invalidRequest }: AdapterNeeds): Adapter {
  const shortLived = createShortLived(store, model);
  return {
    ...none,
    async upsert(token, payload, expiresIn = 0) {
      // Only a new request is limited, not its answer, and no token.
      if (isRequest.has(model) && payload['result'] === undefined) requireShort(payload, invalidRequest);
      await shortLived.insert(token, payload, expiresIn * SECOND_MS);
    },
    find(token) {
      const found = shortLived.find(token);
      if (model === 'AccessToken') request().accessToken = found;
      return found;
    },
    async consume(token) {
      if (!(await shortLived.take(token))) throw invalidGrant('it was already used');
    },
    destroy: shortLived.remove,
  };
}

/** A token without a grant ends with its application. */
function clientCredentialsAdapter(needs: AdapterNeeds): Adapter {
  const tokens = shortLivedAdapter('ClientCredentials', needs);
  const clients = createClients(needs.database);
  return {
    ...tokens,
    async find(token) {
      const payload = await tokens.find(token);
      const client = await clients.find(payload?.clientId ?? '');
      return client && payload;
    },
  };
}

function toPayload(grant: FoundGrant | undefined): AdapterPayload | undefined {
  if (!grant) return undefined;
  const scopes = wordsIn(grant.scopes);
  const openid = { scope: scopes.filter(isIdentityScope).join(' ') };
  const ofResources = scopes.filter((scope) => !isIdentityScope(scope)).join(' ');
  return {
    jti: grant.id,
    kind: 'Grant',
    accountId: grant.userId,
    clientId: grant.applicationId,
    ...(openid.scope !== '' && { openid }),
    ...(grant.resources !== '' && {
      resources: Object.fromEntries(wordsIn(grant.resources).map((resource) => [resource, ofResources])),
    }),
    iat: toSeconds(grant.createdAt),
    exp: toSeconds(grant.expiresAt),
  };
}
