import type { IconName } from '../../icons/lucide.ts';

interface Mark {
  icon: IconName;
  /** `failure` for what was refused, `warning` for what the user should know. */
  look?: 'failure' | 'warning';
}

/** The first that a kind begins with. */
const marks: readonly (readonly [start: string, mark: Mark])[] = [
  ['registered', { icon: 'addUser' }],
  ['verified', { icon: 'mail' }],
  ['logged-in', { icon: 'login' }],
  ['login-refused', { icon: 'block', look: 'failure' }],
  ['login-methods-removed', { icon: 'remove', look: 'warning' }],
  ['reauthenticated', { icon: 'shield' }],
  ['logged-out', { icon: 'logOut' }],
  ['session', { icon: 'logOut' }],
  ['impersonated', { icon: 'shield', look: 'warning' }],
  ['not-me', { icon: 'warning', look: 'warning' }],
  ['password', { icon: 'password' }],
  ['reset-sent', { icon: 'password' }],
  ['email', { icon: 'mail' }],
  ['identity', { icon: 'link' }],
  ['passkey', { icon: 'passkey' }],
  ['key', { icon: 'key' }],
  ['totp', { icon: 'phone' }],
  ['recovery-code', { icon: 'document' }],
  ['second-factors', { icon: 'phone', look: 'warning' }],
  ['profile', { icon: 'user' }],
  ['user-invited', { icon: 'invite' }],
  ['invitation', { icon: 'invite' }],
  ['webhook', { icon: 'webhook' }],
  ['application', { icon: 'app' }],
  ['grant', { icon: 'apps' }],
  ['upload-quarantined', { icon: 'warning', look: 'warning' }],
  ['upload', { icon: 'upload' }],
  ['deletion', { icon: 'remove' }],
  ['user-removed', { icon: 'remove' }],
  ['blocked', { icon: 'block', look: 'failure' }],
  ['unblocked', { icon: 'check' }],
  ['unlocked', { icon: 'check' }],
  ['role', { icon: 'admin' }],
];

/** The icon of an event. One of a newer service has that of the log. */
export function markOf({ kind, details }: { kind: string; details?: Record<string, string> | undefined }): Mark {
  if (kind === 'logged-in' && details?.['device'] === 'new') return { icon: 'login', look: 'warning' };
  return marks.find(([start]) => kind.startsWith(start))?.[1] ?? { icon: 'history' };
}
