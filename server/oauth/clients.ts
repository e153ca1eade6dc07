import { timingSafeEqual } from 'node:crypto';
import type { AdapterPayload, Client } from 'oidc-provider';
import { validate as isUuid } from 'uuid';
import type { ApplicationKind } from '../../entities/index.ts';
import { type ApplicationRow, type ListedApplication, listedColumns, toListed } from '../applications/index.ts';
import { hashOf } from '../lib/random-token.ts';
import { type Database, prepared, sql } from '../parts/database/contract.ts';
import { allowedScopes, isIdentityScope } from './scopes.ts';

/** What the library does not know about an application, as extra metadata of its client. */
export const extraMetadata = [
  'resources',
  'resource_scopes',
  'token_format',
  'secret_hashes',
  'post_logout_redirect_uris',
];

/** Where the answer of the authorization endpoint is. */
export const responseModes = ['query'];

/** How each kind identifies itself, and its flows. */
const metadataOf: Record<ApplicationKind, Partial<AdapterPayload>> = {
  web: { application_type: 'web', token_endpoint_auth_method: 'client_secret_basic' },
  browser: { application_type: 'web', token_endpoint_auth_method: 'none' },
  native: { application_type: 'native', token_endpoint_auth_method: 'none' },
  device: {
    application_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
    response_types: [],
  },
  service: {
    token_endpoint_auth_method: 'client_secret_basic',
    grant_types: ['client_credentials'],
    response_types: [],
  },
};

type ClientRow = ApplicationRow & { secretHash: string | null; formerHash: string | null };

/** The applications as clients of the library. A disabled one is unknown. */
export const createClients = (database: Database) => {
  const rowsById = prepared<ClientRow>();
  return {
    async find(id: string): Promise<AdapterPayload | undefined> {
      if (!isUuid(id)) return undefined;
      const [row] = await database.query((tables) =>
        rowsById(tables, {
          shape: 1,
          build: () =>
            tables
              .selectFrom('applications')
              .select(listedColumns)
              .select([
                'secret_hash as secretHash',
                sql<string | null>`case when former_until > ${database.now} then former_hash end`.as('formerHash'),
              ])
              .where('id', '=', id)
              .where('disabled_by', 'is', null),
          parameters: [id],
        }),
      );
      return row && toMetadata(row);
    },
  };
};

function toMetadata({ secretHash, formerHash, ...columns }: ClientRow): AdapterPayload {
  const application = toListed(columns);
  const hashes = [secretHash, formerHash].filter((hash) => hash !== null);
  return {
    client_id: application.id,
    client_name: application.name,
    redirect_uris: application.redirectUris,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    response_modes: responseModes,
    scope: allowedScopes(application.scopes).filter(isIdentityScope).join(' '),
    ...metadataOf[application.kind],
    ...(application.publicKeys.length > 0 && {
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: application.publicKeys },
    }),
    // The library asks for a secret and compares it by `compareClientSecret`, which knows the hashes.
    ...(hashes[0] !== undefined && { client_secret: hashes[0] }),
    ...ownMetadata(application, hashes),
  };
}

const ownMetadata = (
  { resources, scopes, tokenFormat, postLogoutRedirectUris }: ListedApplication,
  hashes: string[],
) => ({
  resources,
  resource_scopes: scopes.filter((scope) => !isIdentityScope(scope)),
  token_format: tokenFormat,
  secret_hashes: hashes,
  post_logout_redirect_uris: postLogoutRedirectUris,
});

const listIn = (client: Client, name: string): string[] => {
  const value = client[name];
  return Array.isArray(value) ? value.map(String) : [];
};

export const resourcesOf = (client: Client): string[] => listIn(client, 'resources');
export const resourceScopesOf = (client: Client): string[] => listIn(client, 'resource_scopes');
export const postLogoutRedirectUrisOf = (client: Client): string[] => listIn(client, 'post_logout_redirect_uris');
export const hasOpaqueTokens = (client: Client): boolean => client['token_format'] === 'opaque';

/** Two secrets are valid during a rotation. */
export function compareSecret(client: Client, secret: string): boolean {
  const given = Buffer.from(hashOf(secret));
  return listIn(client, 'secret_hashes').some((hash) => timingSafeEqual(Buffer.from(hash), given));
}
