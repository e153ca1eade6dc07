import { count } from './metrics.ts';

/** Work whose failure is hidden from the caller, because something else covers it. */
const works = [
  /** Keys of ended sessions stay in the store until they expire. The database refuses them. */
  'forget_sessions',
  /** The last use of a session is not recorded. The next use retries. */
  'record_session_use',
  /** The last use of an access key is not recorded. The next use retries. */
  'record_key_use',
  /** A refused login is missing in the activity. */
  'record_refused_login',
  /** The attempt of a right password stays counted until its window ends. */
  'refund_attempt',
  /** A reset link stays reserved for 15 seconds. */
  'release_reset_link',
  /** A call is allowed without being counted by its limit, because the store is down. */
  'count_limit',
  /** A line of the log is dropped: the full disk or the reader of standard output has not taken the 16 MB before it. */
  'write_log',
  /** A caller that waits for events learns of them a poll later. */
  'poll_events',
  /** No process numbers events until the lease of the former one ends. */
  'release_event_lease',
  /** A migration goes on. The next renewal before a step reports the failure. */
  'renew_migration_lease',
  /** The next instance waits until the lease ends. */
  'release_migration_lease',
  /** A storage without a setting of buckets grants access to readers and pages by other means. */
  'set_up_bucket',
] as const;
type Work = (typeof works)[number];

/** Handles the rejection of such work: counts it. */
export const ignored = (what: Work) => (): undefined => {
  count('account_background_failures_total', { what });
};

/** Exports every count from the start, with the value 0. */
export function prepareBackgroundCounts(): void {
  for (const what of works) count('account_background_failures_total', { what }, 0);
}
