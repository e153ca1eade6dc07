import type { Caller } from '../../activity/caller.ts';
import type { Activity, NewEvent } from '../../activity/index.ts';
import type { DetailsOf, EventKind } from '../../activity/kinds.ts';
import type { Rate } from '../../config/index.ts';
import { exceeded } from '../../limits/index.ts';
import type { AllTables } from '../../parts/database/contract.ts';
import type { Outbox } from './outbox.ts';
import type { MailContent } from './outbox-rows.ts';

interface Rule<Details> {
  /** The mail about the event. Without it, the act queues its own mail. */
  mail?(details: Details): MailContent;
  /**
   * Whether this kind of act is limited per user, because a session could repeat it without end. Not limited: removing
   * what was added, and acts of the inbox owner.
   */
  isLimited: boolean | ((details: Details) => boolean);
  /** Past the limit the event has no mail. Only for what happens later than its act, so that nothing can be refused. */
  isMailLimited?: boolean;
}

/**
 * The events reported by mail. The mail never contains text written by the user, because another person may have
 * written it. Mails to other addresses are queued by the act itself.
 */
const rules: { [K in EventKind]?: Rule<DetailsOf<K>> } = {
  'password-changed': {
    mail: ({ by }) => ({ kind: 'password-changed', detail: by }),
    isLimited: ({ by }) => by === 'user',
  },
  'email-change-requested': { isLimited: true },
  'deletion-requested': { isLimited: true },
  'login-methods-removed': {
    mail: ({ methods }) => ({ kind: 'login-methods-removed', detail: methods }),
    isLimited: false,
  },
  'identity-linked': { mail: ({ provider }) => ({ kind: 'identity-linked', detail: provider }), isLimited: true },
  'identity-unlinked': { mail: ({ provider }) => ({ kind: 'identity-unlinked', detail: provider }), isLimited: false },
  'passkey-added': { mail: () => ({ kind: 'passkey-added' }), isLimited: true },
  'passkey-removed': { mail: () => ({ kind: 'passkey-removed' }), isLimited: false },
  'key-created': { mail: () => ({ kind: 'key-created' }), isLimited: true },
  'totp-enabled': { mail: () => ({ kind: 'totp-enabled' }), isLimited: true },
  'totp-disabled': { mail: () => ({ kind: 'totp-disabled' }), isLimited: false },
  'recovery-codes-renewed': { mail: () => ({ kind: 'recovery-codes-renewed' }), isLimited: true },
  'recovery-code-used': { mail: ({ left }) => ({ kind: 'recovery-code-used', detail: left }), isLimited: false },
  'second-factors-removed': { mail: () => ({ kind: 'second-factors-removed' }), isLimited: false },
  'upload-quarantined': {
    mail: ({ deletedAfter }) => ({ kind: 'file-quarantined', detail: deletedAfter }),
    isLimited: false,
    isMailLimited: true,
  },
  // That of a trusted application is recorded without a mail and a limit, except on a device.
  'grant-created': { mail: () => ({ kind: 'application-allowed' }), isLimited: true },
  'deletion-undone': { mail: () => ({ kind: 'account-restored' }), isLimited: false },
  impersonated: { mail: () => ({ kind: 'impersonated' }), isLimited: false },
  blocked: { mail: () => ({ kind: 'account-blocked' }), isLimited: false },
  unblocked: { mail: () => ({ kind: 'account-unblocked' }), isLimited: false },
  'role-changed': { mail: ({ to }) => ({ kind: 'role-changed', detail: to }), isLimited: false },
};

/**
 * Records an event in the caller's transaction and queues its mail. Call `outbox.wake` after the commit. Past the limit
 * the act itself is RATE_LIMITED: otherwise a thief could suppress a warning by repeating acts.
 */
export type RecordEvent = (
  tables: AllTables,
  user: { id: string; email: string },
  event: NewEvent,
  caller: Caller,
) => Promise<void>;

/** `rate`: for each kind of limited event of a user. */
export const createEvents =
  (activity: Activity, outbox: Pick<Outbox, 'enqueue'>, rate: Rate): RecordEvent =>
  async (tables, user, event, caller) => {
    const { id: userId, email } = user;
    const { kind } = event;
    const rule: Rule<never> | undefined = rules[kind];
    // The details are those of the kind, as is the rule.
    const details = event.details as never;
    const isLimited = typeof rule?.isLimited === 'function' ? rule.isLimited(details) : rule?.isLimited;
    const withinMs = rate.seconds * 1000;
    const counted = { most: rate.points, withinMs, isUntrusted: true };
    const isReached = () => activity.hasMost(tables, userId, kind, counted);
    if (isLimited && caller.actor === 'user' && (await isReached()))
      throw exceeded('change', { rate, times: 1, msBeforeNext: withinMs });
    const isMailed = rule?.mail && !(rule.isMailLimited && (await isReached()));
    await activity.record(tables, userId, event, caller);
    if (isMailed && rule.mail) await outbox.enqueue(tables, { ...rule.mail(details), email, userId }, caller);
  };
