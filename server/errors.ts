/**
 * Every expected failure: code, HTTP status and public message (interface.md section 7). Pages translate the code (the
 * texts `common.codes`). The private `cause` is logged, never sent.
 */
const catalogue = {
  VALIDATION_FAILED: [400, 'Validation failed'],
  INVALID_TOKEN: [400, 'Invalid or expired token'],
  INVALID_STATE: [400, 'Invalid state parameter'],
  INVALID_CREDENTIALS: [401, 'Invalid email or password'],
  UNAUTHENTICATED: [401, 'Please log in'],
  INVALID_CODE: [401, 'The code is wrong, used or expired'],
  CHALLENGE_REQUIRED: [403, 'The check for automated requests failed. Please try again'],
  EMAIL_NOT_VERIFIED: [403, 'Please verify your email before logging in'],
  FORBIDDEN: [403, 'You do not have permission to do this'],
  REAUTHENTICATION_REQUIRED: [403, 'Please log in again to confirm your identity'],
  INSUFFICIENT_SCOPE: [403, 'The access key or token does not allow this'],
  SECOND_FACTOR_REQUIRED: [403, 'A second factor is required'],
  REGISTRATION_CLOSED: [403, 'Registration is not open to this address'],
  ACCOUNT_DELETED: [403, 'This account is being deleted'],
  ACCOUNT_BLOCKED: [403, 'This account is blocked'],
  ORIGIN_MISMATCH: [403, 'Requests from this origin are not accepted'],
  NOT_FOUND: [404, 'Not found'],
  REQUEST_TIMEOUT: [408, 'The request took too long to arrive'],
  OTHER_USER: [409, 'Another user is logged in. Please load the page again'],
  EMAIL_TAKEN: [409, 'Email already registered'],
  FIELD_TAKEN: [409, 'Already used by another account'],
  IDENTITY_TAKEN: [409, 'This identity belongs to another account'],
  UNPROVEN_ACCOUNT: [409, 'The user must first verify the email or reset the password'],
  LAST_ADMINISTRATOR: [409, 'This is the last administrator who can log in'],
  LAST_LOGIN_METHOD: [409, 'This is the only login method of the account'],
  UPLOAD_PENDING: [409, 'This file has not been scanned yet'],
  UPLOAD_QUARANTINED: [409, 'The scanner found malware in this file'],
  EVENTS_EXPIRED: [410, 'The events after this number are no longer stored'],
  TOO_MANY_KEYS: [409, 'The limit on access keys is reached'],
  TOO_MANY_WEBHOOKS: [409, 'The limit on webhooks is reached'],
  TOO_MANY_APPLICATIONS: [409, 'The limit on applications is reached'],
  WEBHOOK_DISABLED: [409, 'The webhook is disabled'],
  PAYLOAD_TOO_LARGE: [413, 'The request body is too large'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'The content type of the request body is not supported'],
  RATE_LIMITED: [429, 'Too many attempts'],
  INTERNAL: [500, 'Something went wrong on our side'],
  SERVICE_UNAVAILABLE: [503, 'The service is temporarily unavailable, please try again shortly'],
} as const satisfies Record<string, readonly [status: number, message: string]>;

export type ErrorCode = keyof typeof catalogue;
export const errorCodes = Object.keys(catalogue) as ErrorCode[];

/**
 * The problem of each field: a message for users and the name of the broken rule for clients. `rules` lists every
 * broken rule of the field, `rule` first.
 */
export type ErrorDetails = Record<string, { message: string; rule: string; rules?: string[] } & Partial<ProofOfWork>>;

/** ALTCHA's challenge: find the `number`, at most `maxnumber`, with SHA-256(salt + number) = `challenge`. */
export interface ProofOfWork {
  algorithm: string;
  challenge: string;
  maxnumber: number;
  salt: string;
  signature: string;
}

interface ReachedLimit {
  points: number;
  seconds: number;
  variable?: string;
}

interface ErrorOptions {
  message?: string;
  details?: ErrorDetails;
  /** Seconds until a retry may succeed: the Retry-After header. */
  retryAfter?: number;
  /** The limit that was reached, for the RateLimit headers, and its variable, if any, for the log. */
  limit?: ReachedLimit;
  /** The WWW-Authenticate header (RFC 6750 section 3). */
  challenge?: string;
  /** On a redirecting path the browser is sent here instead of the error response. */
  location?: string;
  cause?: unknown;
}

/** An expected failure. `message`, `code` and `details` are public; `cause` is not. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: ErrorDetails | undefined;
  readonly retryAfter: number | undefined;
  readonly limit: ReachedLimit | undefined;
  readonly challenge: string | undefined;
  readonly location: string | undefined;

  constructor(code: ErrorCode, { message, details, retryAfter, limit, challenge, location, cause }: ErrorOptions = {}) {
    super(message ?? catalogue[code][1], { cause });
    this.name = 'ServiceError';
    this.code = code;
    this.status = catalogue[code][0];
    this.details = details;
    this.retryAfter = retryAfter;
    this.limit = limit;
    this.challenge = challenge;
    this.location = location;
  }

  /** The error body of interface.md section 7. */
  toJSON(): { message: string; code: ErrorCode; details?: ErrorDetails } {
    return { message: this.message, code: this.code, ...(this.details && { details: this.details }) };
  }
}

export const statusOf = (code: ErrorCode): number => catalogue[code][0];

/** VALIDATION_FAILED by one field. `options.message` replaces the general message. */
export const invalidField = (
  field: string,
  rule: string,
  message: string,
  options: Pick<ErrorOptions, 'message' | 'cause'> = {},
): ServiceError => new ServiceError('VALIDATION_FAILED', { ...options, details: { [field]: { message, rule } } });

/** A part (database, key-value store) does not respond: 503, retry soon. An expected failure remains what it is. */
export const unavailable = (cause: unknown): ServiceError =>
  cause instanceof ServiceError ? cause : new ServiceError('SERVICE_UNAVAILABLE', { cause, retryAfter: 1 });
