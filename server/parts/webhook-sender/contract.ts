import { ServiceError } from '../../errors.ts';

export interface WebhookRequest {
  url: string;
  headers: Record<string, string>;
  /** The bytes that the signature covers. */
  body: string;
}

const sendErrors = ['timeout', 'unknown-host', 'forbidden-address', 'certificate', 'connection'] as const;
export type SendError = (typeof sendErrors)[number];

/** The response of a receiver, or the reason why no response came. Redirects are responses. */
export type WebhookResponse =
  | {
      status: number;
      /** The first 1000 characters of the body. */
      answer: string;
      /** The header Retry-After. */
      retryAfter: string | undefined;
    }
  | { error: SendError };

/** What is wrong with the URL of a webhook. */
type UrlProblem = 'malformed' | 'too-long' | 'not-https' | 'credentials' | 'forbidden-address';

/** Of a URL in its encoded form, which is stored. */
export const MAX_URL = 2048;

const problemMessages: Record<UrlProblem, string> = {
  malformed: 'Must be a https address without a fragment',
  'too-long': `Must have at most ${MAX_URL} characters when it is percent-encoded`,
  'not-https': 'Must start with https://',
  credentials: 'Must have no user and password',
  'forbidden-address': 'Must be a public address',
};

/** Rejects with VALIDATION_FAILED of the field if the service cannot send to the URL. */
export function requireSendable({ problemOf }: Pick<WebhookSender, 'problemOf'>, field: string, url: string): void {
  const problem = problemOf(url);
  if (!problem) return;
  const details = { [field]: { message: problemMessages[problem], rule: problem.replaceAll('-', '_') } };
  throw new ServiceError('VALIDATION_FAILED', { details });
}

export interface WebhookSender {
  /** Checks a URL without resolving its name. Undefined if it is usable. */
  problemOf(url: string): UrlProblem | undefined;
  /** POSTs a body. Never rejects. Resolves within 15 seconds. */
  send(request: WebhookRequest): Promise<WebhookResponse>;
  /** Ends the requests in flight. */
  close(): void;
}
