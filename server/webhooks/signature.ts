import { createHmac, randomBytes } from 'node:crypto';

/** Standard Webhooks: secrets and headers. */

const PREFIX = 'whsec_';
/** The specification allows 24 to 64. */
const SECRET_BYTES = 32;

export const newSecret = (): string => PREFIX + randomBytes(SECRET_BYTES).toString('base64');

interface Message {
  /** The same on every try. */
  id: string;
  body: string;
}

/** The headers of a delivery at a time in milliseconds since 1970, with one signature per secret. */
export function signedHeaders({ id, body }: Message, secrets: readonly string[], now: number): Record<string, string> {
  const timestamp = Math.floor(now / 1000);
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}
