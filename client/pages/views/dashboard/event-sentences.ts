import { providerLabelFirst, wayIn } from '../../../../server/texts/provider-label.ts';
import type { Write } from '../../../../server/texts/template.ts';

type Details = Record<string, string>;

interface Event {
  kind: string;
  /** `user`, `administrator`, `operator`, or `service:` and its name. */
  actor: string;
  details?: Details | undefined;
}

const refusals: Record<string, string> = {
  'wrong-password': 'wrong password',
  unverified: 'the email was not verified',
  deleted: 'the account is being deleted',
  blocked: 'the account is blocked',
  limited: 'too many attempts',
  'wrong-code': 'wrong code',
  'wrong-passkey': 'the passkey was not accepted',
  'cloned-passkey': 'a copy of a passkey',
};

const secondFactors: Record<string, string> = {
  totp: ' and a code',
  recovery: ' and a recovery code',
  passkey: ' and a passkey',
};

const others: Record<string, string> = { administrator: 'an administrator', operator: 'the operator of the site' };

/** What the events of each kind say. The service may be newer, and have kinds that are not here. */
export const sentences: Record<string, (details: Details, write: Write) => string> = {
  registered: ({ method = '' }, write) =>
    method === 'import' ? 'Account imported' : `Account created ${wayIn(method, write)}`,
  verified: () => 'Email verified',
  'logged-in': ({ method = '', secondFactor = '', device }, write) =>
    `Logged in ${wayIn(method, write)}${secondFactors[secondFactor] ?? ''}${device === 'new' ? ', on a new device' : ''}`,
  'login-refused': ({ reason = '' }) => `Login refused: ${refusals[reason] ?? reason}`,
  reauthenticated: ({ method = '' }, write) => `Confirmed that it was you, ${wayIn(method, write)}`,
  'logged-out': () => 'Logged out',
  'session-ended': ({ device }) => `Session ended: ${device}`,
  'sessions-ended': () => 'Logged out everywhere',
  'not-me': () => 'A login was disowned: logged out everywhere, and the password removed',
  'password-changed': () => 'Password changed',
  'email-change-requested': ({ email }) => `Change of email asked for: ${email}`,
  'email-changed': ({ from, to }) => `Email changed from ${from} to ${to}`,
  'email-change-undone': ({ to }) => `Change of email undone: it is ${to} again`,
  'identity-linked': ({ provider = '' }, write) => `${providerLabelFirst(provider, write)} linked`,
  'identity-unlinked': ({ provider = '' }, write) => `${providerLabelFirst(provider, write)} unlinked`,
  'passkey-added': ({ name }) => `Passkey “${name}” added`,
  'passkey-removed': ({ name }) => `Passkey “${name}” removed`,
  'totp-enabled': () => 'Authenticator app turned on',
  'totp-disabled': () => 'Authenticator app turned off',
  'recovery-codes-renewed': () => 'New recovery codes made',
  'recovery-code-used': ({ left }) => `Recovery code used; ${left} left`,
  'second-factors-removed': () => 'Authenticator app and recovery codes removed',
  'login-methods-removed': () => 'Ways to log in that nobody had confirmed were removed',
  'profile-changed': ({ fields }) => `Profile changed: ${fields}`,
  'user-invited': ({ email }) => `${email} invited`,
  'invitation-revoked': ({ email }) => `Invitation of ${email} revoked`,
  'upload-stored': () => 'File uploaded',
  'deletion-requested': () => 'Deletion of the account asked for',
  'deletion-undone': () => 'Account restored',
  blocked: () => 'Account blocked, and logged out everywhere',
  unblocked: () => 'Account unblocked',
  unlocked: () => 'Limits on wrong passwords and codes lifted',
  'role-changed': ({ to }) => (to === 'admin' ? 'Made an administrator' : 'Made an ordinary user'),
  'reset-sent': () => 'Link to set a new password mailed',
};

/** What an event says to the user of the account. */
export function sentenceOf({ kind, actor, details = {} }: Event, write: Write): string {
  const sentence = sentences[kind]?.(details, write) ?? kind;
  return actor === 'user' ? sentence : `${sentence}, by ${others[actor] ?? actor.replace('service:', 'the service ')}`;
}
