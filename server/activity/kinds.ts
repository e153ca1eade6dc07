/**
 * Every kind of event that concerns the security of an account, with what it means. Users read them in their activity; a
 * new one is an entry here, and a text of `dashboard.events` in each language.
 */
export const eventKinds = {
  registered:
    'the account was made; `details.method` says how (`import` by an operator), `details.invitedBy` is `administrator` or `operator` where that took an invitation',
  verified: 'its address was verified',
  'logged-in':
    '`details.method` says how, `details.secondFactor` (`totp`, `recovery` or `passkey`) what was asked for after that; `details.device` is `new` where a mail told of a device not seen before',
  'login-refused':
    '`details.reason`: `wrong-password`, `unverified`, `deleted`, `blocked`, `limited`, `wrong-code`, `wrong-passkey` or `cloned-passkey`',
  reauthenticated: 'the user gave a credential again, in a session; `details.method` says how',
  'logged-out': 'a session ended by its own logout, or by a login in its place',
  'session-ended': 'a session was ended from another one; `details.device` was its device',
  'sessions-ended': 'every session was ended',
  'not-me': 'the user disowned a login: every session was ended, and the ways to log in of `details.methods` removed',
  'password-changed': '`details.by`: `reset`, or `user` in a session',
  'email-change-requested': 'to `details.email`',
  'email-changed': 'from `details.from` to `details.to`',
  'email-change-undone':
    'from `details.from` back to `details.to`; with it the login methods of `details.methods` were removed',
  'identity-linked': 'of the provider `details.provider`',
  'identity-unlinked': 'of the provider `details.provider`',
  'passkey-added': 'of the name `details.name`',
  'passkey-removed': 'of the name `details.name`',
  'totp-enabled': 'the codes of an authenticator app are asked for from now on',
  'totp-disabled': 'they are asked for no more',
  'recovery-codes-renewed': 'the former ones are void',
  'recovery-code-used': 'of which `details.left` are left',
  'second-factors-removed': 'by an administrator: the authenticator app and the recovery codes',
  'login-methods-removed': 'those of `details.methods`, which nobody had proven',
  'profile-changed': 'the fields `details.fields`',
  'user-invited': 'the administrator invited `details.email` to create an account',
  'invitation-revoked': 'the administrator revoked the invitation of `details.email`',
  'upload-stored': 'under `details.key`',
  'deletion-requested': 'the account is removed after `details.removedAfter`, in ISO 8601',
  'deletion-undone': 'the account stays',
  blocked: 'every session was ended, and no login opens another',
  unblocked: 'logins are possible again',
  unlocked: 'wrong credentials are counted anew',
  'role-changed': 'to `details.to`; every session of a new administrator was ended',
  'reset-sent': 'a link that sets a new password was mailed, which the user had not asked for',
} as const;

export type EventKind = keyof typeof eventKinds;
