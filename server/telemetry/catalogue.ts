/** Every metric of the service but those of the process, which prom-client names. Labels have few values each, whatever is sent. */

/** Upper bounds in seconds: from a read to the longest time limit of a request. */
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const WAIT_SECONDS = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

interface Series {
  help: string;
  labels: readonly string[];
}

export const histograms = {
  http_server_request_duration_seconds: {
    help: 'From the head of a request to its answer, by the documented path or the procedure',
    labels: ['method', 'route', 'status'],
    buckets: REQUEST_SECONDS,
  },
  account_password_wait_seconds: {
    help: 'How long a password hash waited for its turn',
    labels: [],
    buckets: WAIT_SECONDS,
  },
  account_image_wait_seconds: {
    help: 'How long an image waited for its conversion',
    labels: [],
    buckets: WAIT_SECONDS,
  },
} as const satisfies Record<string, Series & { buckets: readonly number[] }>;

export const counters = {
  account_logins_total: {
    help: 'Logins by method (password, passkey, the name of a provider; totp, recovery and passkey for the second step) and outcome',
    labels: ['method', 'outcome'],
  },
  account_mail_attempts_total: {
    help: 'Attempts to deliver a mail by outcome: sent, retried, refused for good (dead), dropped, unwanted',
    labels: ['outcome'],
  },
} as const satisfies Record<string, Series>;

/** `across`: what several processes of one machine make of their values together. Rows are the same for all of them. */
export const gauges = {
  account_password_queue_running: { help: 'Password hashes at work', across: 'sum' },
  account_password_queue_waiting: { help: 'Password hashes that wait for their turn', across: 'sum' },
  account_image_queue_waiting: { help: 'Images that wait for their conversion', across: 'sum' },
  account_outbox_pending_mails: { help: 'Mails, and requests for one, that are not settled', across: 'max' },
  account_outbox_due_mails: { help: 'Pending mails that no process has taken although they may be', across: 'max' },
  account_outbox_oldest_age_seconds: { help: 'Age of the oldest pending mail; 0 without one', across: 'max' },
  account_uploads_due: { help: 'Uploads whose inspection or deletion is due', across: 'max' },
  account_removals_due: { help: 'Deleted users whose removal is due or under way', across: 'max' },
  account_removals_oldest_age_seconds: {
    help: 'How long the oldest of these has been due or under way; 0 without one',
    across: 'max',
  },
  account_database_connections_used: { help: 'Connections of the pool that are at work', across: 'sum' },
  account_database_connections_free: { help: 'Open connections of the pool that are not', across: 'sum' },
  account_database_waiting: { help: 'Transactions and reads that wait for a connection', across: 'sum' },
  account_database_up: { help: '1 while the database answers', across: 'min' },
  account_key_value_store_up: { help: '1 while Redis, or the embedded store, answers', across: 'min' },
} as const satisfies Record<string, { help: string; across: 'sum' | 'max' | 'min' }>;

export type HistogramName = keyof typeof histograms;
export type CounterName = keyof typeof counters;
export type GaugeName = keyof typeof gauges;

export type Labels<Of extends Series> = Record<Of['labels'][number], string>;
