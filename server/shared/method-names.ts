/** The login methods and second factors of the service itself. An identity is named by its provider. */
export const ownMethods = ['password', 'passkey', 'email-code', 'totp', 'recovery'] as const;
export type OwnMethod = (typeof ownMethods)[number];

declare const provider: unique symbol;
/** The configured name of an identity provider, such as `github`. Differs from every other name in this file. */
export type ProviderName = string & { readonly [provider]: true };

/** The method of a session in which an administrator acts for the user. */
export const IMPERSONATION = 'impersonation';

/** How a user logs in or gives a second factor, as stored in sessions and events. */
export type LoginMethod = OwnMethod | ProviderName | typeof IMPERSONATION;

/**
 * Values for accounts created without a provider: `email` in the profile's `provider`, `import` in the first event's
 * `method`.
 */
export const ownOrigins = ['email', 'import'] as const;
export type OwnOrigin = (typeof ownOrigins)[number];
