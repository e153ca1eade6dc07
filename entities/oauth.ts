import { defineEntity, p } from '@mikro-orm/core';

/** What the OpenID provider stores. */

/*
 * The id of an application is the OAuth `client_id`. Lists of addresses and scopes are separated by spaces, which
 * neither contains. Of secrets only the SHA-256 is stored; the former one is accepted until `formerUntil`. `publicKeys`
 * are JWKs as JSON, instead of a secret. `administratorId` is who created the application or last enabled it,
 * `changedBy` who changed it last; null for an operator. `disabledBy` is set while it is disabled.
 *
 * A grant belongs to the session in which the user gave it, and to the epoch of that session. `scopes` and `resources`
 * are separated by spaces. It ends with the epoch; without `offline_access` it also ends with the session, and its row
 * stays as the memory of the consent. `logoutToldAt` is when the application was told that the login has ended. A grant
 * that was ended itself has its own id as its session, and expired at 0 (`endGrants`).
 */

/** Where an application runs decides how it identifies itself, and which flows and redirect addresses it may use. */
export const applicationKinds = ['web', 'browser', 'native', 'device', 'service'] as const;
export type ApplicationKind = (typeof applicationKinds)[number];

/** The form of access tokens for its resources. */
export const tokenFormats = ['jwt', 'opaque'] as const;
export type TokenFormat = (typeof tokenFormats)[number];

export const ApplicationSchema = defineEntity({
  name: 'Application',
  tableName: 'applications',
  properties: {
    id: p.string().primary(),
    name: p.string(),
    kind: p.string().$type<ApplicationKind>(),
    redirectUris: p.string(),
    postLogoutRedirectUris: p.string(),
    resources: p.string(),
    scopes: p.string(),
    tokenFormat: p.string().$type<TokenFormat>(),
    trusted: p.boolean(),
    logoUrl: p.string().nullable(),
    backchannelLogoutUri: p.string().nullable(),
    publicKeys: p.string().nullable(),
    secretHash: p.string().nullable().hidden(),
    formerHash: p.string().nullable().hidden(),
    formerUntil: p.bigint('number').nullable(),
    disabledBy: p.string().$type<'administrator'>().nullable(),
    administratorId: p.string().nullable(),
    changedBy: p.string().nullable(),
    createdAt: p.bigint('number'),
  },
});

/** An application whose users log in here: an OAuth client. */
export class Application extends ApplicationSchema.class {}

ApplicationSchema.setClass(Application);

export const GrantSchema = defineEntity({
  name: 'Grant',
  tableName: 'grants',
  properties: {
    id: p.string().primary(),
    userId: p.string(),
    applicationId: p.string(),
    sessionId: p.string(),
    epoch: p.integer(),
    scopes: p.string(),
    resources: p.string(),
    createdAt: p.bigint('number'),
    lastUsedAt: p.bigint('number'),
    logoutToldAt: p.bigint('number').nullable(),
    expiresAt: p.bigint('number'),
  },
});

/** What a user allows an application. */
export class Grant extends GrantSchema.class {}

GrantSchema.setClass(Grant);

/*
 * `id` is the SHA-256 of the kind and the token. `payload` is the library's, as JSON without the token. `consumedBy` is the hash
 * of who used it.
 */
export const OAuthArtifactSchema = defineEntity({
  name: 'OAuthArtifact',
  tableName: 'oauth_artifacts',
  properties: {
    id: p.string().primary(),
    grantId: p.string(),
    payload: p.string(),
    consumedAt: p.bigint('number').nullable(),
    consumedBy: p.string().nullable(),
    expiresAt: p.bigint('number'),
  },
});

/** An authorization code or a refresh token. */
export class OAuthArtifact extends OAuthArtifactSchema.class {}

OAuthArtifactSchema.setClass(OAuthArtifact);

/*
 * `id` is the `kid`, `sealed` the private JWK encrypted under APP_SECRET. A key is published from the start, and signs
 * from `activeAt` until the next one does.
 */

export const SigningKeySchema = defineEntity({
  name: 'SigningKey',
  tableName: 'signing_keys',
  properties: {
    id: p.string().primary(),
    sealed: p.string().hidden(),
    activeAt: p.bigint('number'),
    createdAt: p.bigint('number'),
  },
});

/** A key that signs tokens for other applications. */
export class SigningKey extends SigningKeySchema.class {}

SigningKeySchema.setClass(SigningKey);
