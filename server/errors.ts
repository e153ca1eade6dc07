/**
 * Every expected failure, in one catalogue: a code, its HTTP status and the sentence that callers read (interface.md
 * section 7), which pages say in their language (the texts `common.codes`). The private detail of a failure is its `cause`, which is logged and never answered.
 */
const catalogue = {
  VALIDATION_FAILED: [400, 'Validation failed'],
  INVALID_TOKEN: [400, 'Invalid or expired token'],
  INVALID_STATE: [400, 'Invalid state parameter'],
  INVALID_CREDENTIALS: [401, 'Invalid email or password'],
  UNAUTHENTICATED: [401, 'Please log in'],
  INVALID_CODE: [401, 'The code is wrong, used or expired'],
  EMAIL_NOT_VERIFIED: [403, 'Please verify your email before logging in'],
  FORBIDDEN: [403, 'You do not have permission to do this'],
  REAUTHENTICATION_REQUIRED: [403, 'Please confirm that it is you: log in again'],
  SECOND_FACTOR_REQUIRED: [403, 'Please give your second factor'],
  REGISTRATION_CLOSED: [403, 'Registration is not open to this address'],
  ACCOUNT_DELETED: [403, 'This account is being deleted'],
  ACCOUNT_BLOCKED: [403, 'This account is blocked'],
  ORIGIN_MISMATCH: [403, 'Requests from this origin are not accepted'],
  NOT_FOUND: [404, 'Not found'],
  EMAIL_TAKEN: [409, 'Email already registered'],
  IDENTITY_TAKEN: [409, 'This identity belongs to another account'],
  UNPROVEN_ACCOUNT: [409, 'The user must first verify the email, or set a new password by a mailed link'],
  LAST_ADMINISTRATOR: [409, 'This is the last administrator who can log in'],
  LAST_LOGIN_METHOD: [409, 'This is the last way to log in to the account'],
  PAYLOAD_TOO_LARGE: [413, 'The request body is too large'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'The content type of the request body is not supported here'],
  RATE_LIMITED: [429, 'Too many attempts'],
  INTERNAL: [500, 'Something went wrong on our side'],
  SERVICE_UNAVAILABLE: [503, 'The service is temporarily unavailable, please try again shortly'],
} as const satisfies Record<string, readonly [status: number, message: string]>;

export type ErrorCode = keyof typeof catalogue;
export const errorCodes = Object.keys(catalogue) as ErrorCode[];

/**
 * The problem with each field: a sentence for users, and the name of the broken rule for clients. `rules`: of an input that its
 * schema refuses, every rule that the field breaks, `rule` first.
 */
export type ErrorDetails = Record<string, { message: string; rule: string; rules?: string[] }>;

interface ErrorOptions {
  message?: string;
  details?: ErrorDetails;
  /** Seconds after which a retry may succeed: the Retry-After header. */
  retryAfter?: number;
  /** The limit that was reached, for the RateLimit headers. */
  limit?: { points: number; seconds: number };
  /** Where a browser is sent in place of this answer, by a path that redirects. */
  location?: string;
  cause?: unknown;
}

/** An expected failure. `message`, `code` and `details` are public; `cause` is not. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: ErrorDetails | undefined;
  readonly retryAfter: number | undefined;
  readonly limit: { points: number; seconds: number } | undefined;
  readonly location: string | undefined;

  constructor(code: ErrorCode, { message, details, retryAfter, limit, location, cause }: ErrorOptions = {}) {
    super(message ?? catalogue[code][1], { cause });
    this.name = 'ServiceError';
    this.code = code;
    this.status = catalogue[code][0];
    this.details = details;
    this.retryAfter = retryAfter;
    this.limit = limit;
    this.location = location;
  }

  /** The error body of interface.md section 7. */
  toJSON(): { message: string; code: ErrorCode; details?: ErrorDetails } {
    return { message: this.message, code: this.code, ...(this.details && { details: this.details }) };
  }
}

/** The HTTP status of a code. */
export const statusOf = (code: ErrorCode): number => catalogue[code][0];

/** A part does not answer (database, key-value store): 503, to be retried soon. */
export const unavailable = (cause: unknown): ServiceError =>
  new ServiceError('SERVICE_UNAVAILABLE', { cause, retryAfter: 1 });
