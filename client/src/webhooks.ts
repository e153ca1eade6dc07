/** A delivery that the service did not sign, or that is too old. */
export class WebhookError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'WebhookError';
  }
}

/** What a receiver gets: a Request, or anything with its headers and its body as text. */
export interface WebhookRequest {
  headers: { get(name: string): string | null };
  text(): Promise<string>;
}

export interface VerifiedWebhook {
  /** The same however often the event is sent: a receiver that stores it handles each event once. */
  id: string;
  /** The place in the stream, which grows in the order of commits; 0 in a test. */
  number: number;
  /** `webhook.test` is sent by administrators to test a receiver. */
  type: string;
  /** ISO 8601. */
  timestamp: string;
  data: Record<string, unknown>;
}

/** The tolerance for clocks, and against a repeated delivery. */
const TOLERANCE_SECONDS = 5 * 60;

/**
 * The event in a delivery of a webhook. Throws WebhookError unless the secret has signed it (Standard Webhooks) within the
 * last five minutes. On WebCrypto: Node, Deno and workers.
 */
export async function verifyWebhook(request: WebhookRequest, secret: string): Promise<VerifiedWebhook> {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(
    (name) => request.headers.get(name) ?? '',
  ) as [string, string, string];
  if (!id || !/^\d+$/.test(timestamp) || !signatures) throw new WebhookError('The webhook headers are missing');
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS)
    throw new WebhookError('The webhook was sent more than five minutes ago');
  const body = await request.text();
  const key = await crypto.subtle.importKey(
    'raw',
    bytesOf(secret.replace(/^whsec_/, '')),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['verify'],
  );
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  for (const signature of signatures.split(' ')) {
    const [version, value = ''] = signature.split(',');
    // Compares in constant time.
    if (version === 'v1' && (await crypto.subtle.verify('HMAC', key, bytesOf(value), signed))) return JSON.parse(body);
  }
  throw new WebhookError('The webhook was not signed with this secret');
}

/** Of base64; empty for any other text. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
