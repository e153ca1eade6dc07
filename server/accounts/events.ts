import type { Caller } from '../activity/caller.ts';
import type { Activity, NewEvent } from '../activity/index.ts';
import type { EventKind } from '../activity/kinds.ts';
import type { AllTables } from '../parts/database/contract.ts';
import type { MailKind } from './mail-kinds.ts';
import type { Outbox } from './outbox.ts';

/**
 * The events that the user is told of by mail, and which of their details its text contains. A mail that goes to another
 * address than the account's, or has a token, is queued by its rule.
 */
const mailOf: Partial<Record<EventKind, { kind: MailKind; about?: string }>> = {
  'password-changed': { kind: 'password-changed', about: 'by' },
  'login-methods-removed': { kind: 'login-methods-removed', about: 'methods' },
  'identity-linked': { kind: 'identity-linked', about: 'provider' },
  'identity-unlinked': { kind: 'identity-unlinked', about: 'provider' },
  'passkey-added': { kind: 'passkey-added', about: 'name' },
  'passkey-removed': { kind: 'passkey-removed', about: 'name' },
  'totp-enabled': { kind: 'totp-enabled' },
  'totp-disabled': { kind: 'totp-disabled' },
  'recovery-codes-renewed': { kind: 'recovery-codes-renewed' },
  'recovery-code-used': { kind: 'recovery-code-used', about: 'left' },
  'second-factors-removed': { kind: 'second-factors-removed' },
  'deletion-undone': { kind: 'account-restored' },
  blocked: { kind: 'account-blocked' },
  unblocked: { kind: 'account-unblocked' },
  'role-changed': { kind: 'role-changed', about: 'to' },
};

/**
 * Inserts an event in the transaction of the change that it tells of, and queues the mail about it. Call `outbox.wake`
 * after the commit.
 */
export type RecordEvent = (
  tables: AllTables,
  user: { id: string; email: string },
  event: NewEvent,
  caller: Caller,
) => Promise<void>;

export const createEvents =
  (activity: Activity, outbox: Pick<Outbox, 'enqueue'>): RecordEvent =>
  async (tables, user, event, caller) => {
    await activity.record(tables, user.id, event, caller);
    const mail = mailOf[event.kind];
    if (!mail) return;
    const detail = mail.about && event.details?.[mail.about];
    const { id: userId, email } = user;
    await outbox.enqueue(tables, { kind: mail.kind, email, userId, ...(detail && { detail }) }, caller);
  };
