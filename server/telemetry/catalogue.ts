/**
 * Every metric of the service, except those of the process, which prom-client names. Labels have few values each,
 * whatever clients send.
 */

/** Upper bounds in seconds: from a read to the longest time limit of a request. */
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const WAIT_SECONDS = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

interface Series {
  help: string;
  labels: readonly string[];
}

export const histograms = {
  http_server_request_duration_seconds: {
    help: 'Time from the headers of a request to its response, by documented path or procedure',
    labels: ['method', 'route', 'status'],
    buckets: REQUEST_SECONDS,
  },
  account_password_wait_seconds: {
    help: 'Time a password hash waited in the queue',
    labels: [],
    buckets: WAIT_SECONDS,
  },
  account_image_wait_seconds: {
    help: 'Time an image waited for its conversion',
    labels: [],
    buckets: WAIT_SECONDS,
  },
} as const satisfies Record<string, Series & { buckets: readonly number[] }>;

export const counters = {
  account_logins_total: {
    help: 'Logins by method (password, passkey, the name of a provider; totp, recovery and passkey for the second step) and outcome',
    labels: ['method', 'outcome'],
  },
  account_challenges_total: {
    help: 'Challenges (CHALLENGE) by procedure and outcome: demanded, solved, failed (a wrong, expired or used solution)',
    labels: ['procedure', 'outcome'],
  },
  account_background_failures_total: {
    help: 'Failures that no response and no log line reports, by work; background.ts says what each leaves behind',
    labels: ['what'],
  },
  account_mail_attempts_total: {
    help: 'Attempts to deliver a mail by outcome: sent, retried, permanently refused (dead), dropped, unwanted',
    labels: ['outcome'],
  },
  account_image_variants_total: {
    help: 'Stored images whose smaller pictures were made later, by outcome: made, skipped (missing or unreadable), deleted meanwhile',
    labels: ['outcome'],
  },
  account_upload_scans_total: {
    help: 'Files given to the scanner by outcome: clean, infected, unknown (it did not look at it), failed (no answer), allowed (no answer, and SCAN_DOWN=allow)',
    labels: ['outcome'],
  },
  account_webhook_deliveries_total: {
    help: 'Tries to deliver an event by outcome: delivered, retried, given up (failed), no longer stored (no_event)',
    labels: ['outcome'],
  },
} as const satisfies Record<string, Series>;

/** `across` is how the values of several processes on one machine are combined. Rows are the same for all of them. */
export const gauges = {
  account_password_queue_running: { help: 'Password hashes being computed', across: 'sum' },
  account_password_queue_waiting: { help: 'Password hashes in the queue', across: 'sum' },
  account_image_queue_waiting: { help: 'Images in the queue', across: 'sum' },
  account_outbox_pending_mails: { help: 'Mails and mail requests that are not completed', across: 'max' },
  account_outbox_due_mails: { help: 'Pending mails that are due and not leased', across: 'max' },
  account_outbox_oldest_age_seconds: { help: 'Age of the oldest pending mail; 0 without one', across: 'max' },
  account_uploads_due: { help: 'Uploads due for inspection or deletion', across: 'max' },
  account_images_without_variants: {
    help: 'Stored images that wait for smaller pictures of the widths of IMAGE_SIZES',
    across: 'max',
  },
  account_uploads_pending: { help: 'Declared files that the scanner has not looked at yet', across: 'max' },
  account_uploads_quarantined: { help: 'Files in quarantine', across: 'max' },
  account_removals_due: { help: 'Deleted users with a removal that is due or in progress', across: 'max' },
  account_removals_oldest_age_seconds: {
    help: 'Time since the oldest due removal of a user became due; 0 without one',
    across: 'max',
  },
  account_events_lag_seconds: {
    help: 'Age of the oldest event without a number; 0 without one, and while nobody can read events',
    across: 'max',
  },
  account_events_last_number: {
    help: 'The last number of the stream of events; 0 while nobody can read them',
    across: 'max',
  },
  account_webhook_failing_seconds: {
    help: 'Time since the first failure after the last success of an enabled webhook; 0 without a failure, or if no delivery waits',
    across: 'max',
    labels: ['webhook'],
  },
  account_webhook_oldest_age_seconds: {
    help: 'Time that deliveries to an enabled webhook have waited: since the first failure after the last success, else since the first one was due; 0 if none waits',
    across: 'max',
    labels: ['webhook'],
  },
  account_database_connections_used: { help: 'Connections of the pool in use', across: 'sum' },
  account_database_connections_free: { help: 'Idle connections of the pool', across: 'sum' },
  account_database_waiting: { help: 'Transactions and reads waiting for a connection', across: 'sum' },
  account_database_up: { help: '1 while the database responds', across: 'min' },
  account_scanner_up: { help: '1 while the scanner responds', across: 'min' },
  account_key_value_store_up: { help: '1 while Redis, or the embedded store, responds', across: 'min' },
} as const satisfies Record<string, { help: string; across: 'sum' | 'max' | 'min'; labels?: readonly string[] }>;

export type HistogramName = keyof typeof histograms;
export type CounterName = keyof typeof counters;
export type GaugeName = keyof typeof gauges;
export type LabelledGaugeName = {
  [Name in GaugeName]: (typeof gauges)[Name] extends { labels: readonly string[] } ? Name : never;
}[GaugeName];

export type Labels<Of extends Series> = Record<Of['labels'][number], string>;
