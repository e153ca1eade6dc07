import { z } from 'zod';
import { roles } from '../../entities/index.ts';
import type { LoginMethod, ProviderName } from '../shared/method-names.ts';

/** A kind of event: its meaning, and its details by name. Details are texts and contain no secrets. */
export interface Kind {
  meaning: string;
  details?: Record<string, z.ZodType<string | undefined>>;
}

const text = <Value extends string = string>(meaning: string) =>
  z.string().describe(meaning) as z.ZodType<string> as z.ZodType<Value>;
const oneOf = <const Value extends string>(values: readonly Value[], meaning: string) =>
  z.enum(values).describe(meaning);

const provider = text<ProviderName>('the name of the provider');
const passkey = { name: text('its name'), id: text('its id').exactOptional() };
const session = text('the id of the session').exactOptional();
const removedMethods = text('the removed login methods, separated by commas');

/**
 * Every kind of security event of an account; users read them in their activity. A new one needs an entry here and a
 * text of `dashboard.events` in each language.
 */
export const eventKinds = {
  registered: {
    meaning: 'the account was created',
    details: {
      method: text<LoginMethod | 'import'>('how (`import` by an operator)'),
      invitedBy: oneOf(['administrator', 'operator'], 'who invited the user').exactOptional(),
    },
  },
  verified: { meaning: 'its address was verified' },
  'logged-in': {
    meaning: 'a login',
    details: {
      method: text<LoginMethod>('how'),
      secondFactor: oneOf(['totp', 'recovery', 'passkey'], 'the second factor used').exactOptional(),
      device: oneOf(['new'], 'if a mail reported a new device').exactOptional(),
      session,
    },
  },
  'login-refused': {
    meaning: 'a login was refused',
    details: {
      reason: oneOf(
        [
          'wrong-password',
          'unverified',
          'deleted',
          'blocked',
          'limited',
          'wrong-code',
          'wrong-passkey',
          'cloned-passkey',
        ],
        'why',
      ),
    },
  },
  reauthenticated: {
    meaning: 'the user gave a credential again, in a session',
    details: { method: text<LoginMethod>('how') },
  },
  'logged-out': { meaning: 'a session ended by its own logout, or by a login in its place', details: { session } },
  'session-ended': {
    meaning: 'a session was ended from another one',
    details: { device: text('its device'), session },
  },
  'sessions-ended': { meaning: 'every session was ended' },
  'not-me': {
    meaning: 'the user disowned a login: every session was ended',
    details: { methods: removedMethods.exactOptional() },
  },
  'password-changed': {
    meaning: 'a new password',
    details: { by: oneOf(['reset', 'user'], 'by a mailed link, or by the user in a session') },
  },
  'email-change-requested': { meaning: 'a change of address was requested', details: { email: text('the new one') } },
  'email-changed': { meaning: 'the address was changed', details: { from: text('the former'), to: text('the new') } },
  'email-change-undone': {
    meaning: 'the address was changed back',
    details: { from: text('the former'), to: text('the new'), methods: removedMethods.exactOptional() },
  },
  'identity-linked': { meaning: 'a login through a provider was linked', details: { provider } },
  'identity-unlinked': { meaning: 'a login through a provider was unlinked', details: { provider } },
  'passkey-added': { meaning: 'a passkey was added', details: passkey },
  'passkey-removed': { meaning: 'a passkey was removed', details: passkey },
  'key-created': {
    meaning: 'an access key was created',
    details: { name: text('its name'), id: text('its id'), scopes: text('what it allows, separated by commas') },
  },
  'key-revoked': { meaning: 'an access key was revoked', details: { name: text('its name'), id: text('its id') } },
  'totp-enabled': { meaning: 'the codes of an authenticator app are required from now on' },
  'totp-disabled': { meaning: 'the codes are no longer required' },
  'recovery-codes-renewed': { meaning: 'the former codes are void' },
  'recovery-code-used': { meaning: 'a recovery code was used', details: { left: text('how many are left') } },
  'second-factors-removed': { meaning: 'by an administrator: the authenticator app and the recovery codes' },
  'login-methods-removed': {
    meaning: 'login methods that nobody had proven were removed',
    details: { methods: removedMethods },
  },
  'profile-changed': { meaning: 'the profile was changed', details: { fields: text('which fields') } },
  'user-invited': {
    meaning: 'the administrator invited a person to create an account',
    details: { email: text('the invited address') },
  },
  'invitation-revoked': {
    meaning: 'the administrator revoked an invitation',
    details: { email: text('the invited address') },
  },
  'webhook-added': { meaning: 'the administrator added a webhook', details: { url: text('its URL') } },
  'webhook-changed': {
    meaning: 'the administrator changed a webhook, or its secret',
    details: { url: text('its URL') },
  },
  'webhook-removed': { meaning: 'the administrator removed a webhook', details: { url: text('its URL') } },
  'application-added': { meaning: 'the administrator added an application', details: { name: text('its name') } },
  'application-changed': {
    meaning: 'the administrator changed an application, or its secret',
    details: { name: text('its name') },
  },
  'application-removed': { meaning: 'the administrator removed an application', details: { name: text('its name') } },
  'grant-created': {
    meaning: 'an application got access to the account',
    details: {
      application: text('its name'),
      applicationId: text('its id'),
      trusted: text('`true` if no mail was sent, because the application is trusted').exactOptional(),
    },
  },
  'grant-revoked': {
    meaning: 'the access of an application ended',
    details: {
      application: text('its name'),
      applicationId: text('its id'),
      grant: text('the id of the grant, if only one has ended').exactOptional(),
    },
  },
  'upload-stored': { meaning: 'a file was uploaded', details: { key: text('its key') } },
  'upload-quarantined': {
    meaning: 'the scanner found malware in a file: nobody can read it',
    details: {
      key: text('its key'),
      finding: text('what the scanner found'),
      deletedAfter: text('when it is deleted at the earliest, in ISO 8601'),
    },
  },
  'upload-removed': { meaning: 'a stored file was deleted', details: { key: text('its key') } },
  'deletion-requested': {
    meaning: 'the account is being deleted',
    details: { removedAfter: text('when it is removed at the earliest, in ISO 8601') },
  },
  'deletion-undone': { meaning: 'the account stays' },
  'user-removed': { meaning: 'everything about the user was deleted, also all other events' },
  blocked: { meaning: 'every session was ended, and logins are refused' },
  unblocked: { meaning: 'logins are possible again' },
  unlocked: {
    meaning: 'the login limits were reset',
    details: { address: text('the client address whose limits were reset too').exactOptional() },
  },
  'role-changed': {
    meaning: 'another role (every session of a new administrator was ended)',
    details: { to: oneOf(roles, 'the new role') },
  },
  impersonated: {
    meaning: 'an administrator began to act for the user, in a session of the user',
    details: { session },
  },
  'reset-sent': { meaning: 'a password reset link was mailed without a request of the user' },
} as const satisfies Record<string, Kind>;

export type EventKind = keyof typeof eventKinds;

/** The details of an event of one kind. Empty for a kind without details. */
export type DetailsOf<K extends EventKind> = (typeof eventKinds)[K] extends {
  details: infer Shape extends z.ZodRawShape;
}
  ? z.output<z.ZodObject<Shape>>
  : Record<never, never>;

/** An event to record: a kind with its own details. Details may be left out if all are optional. */
export type NewEvent = {
  [K in EventKind]: { kind: K } & (keyof DetailsOf<K> extends never
    ? { details?: never }
    : Record<never, never> extends DetailsOf<K>
      ? { details?: DetailsOf<K> }
      : { details: DetailsOf<K> });
}[EventKind];
