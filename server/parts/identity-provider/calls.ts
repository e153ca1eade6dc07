import type { CustomFetch } from 'openid-client';
import type { IdentityProviderClient } from '../../config/identity-providers.ts';

/** Each call to a provider, including its body, ends within this time. */
export const CALL_LIMIT_SECONDS = 5;
/** Far more than any document of a provider. */
const BODY_LIMIT_BYTES = 1024 * 1024;

/** openid-client refuses plain http by default. The configuration accepts it for this machine only. */
export const isPlainHttp = (issuer: string): boolean => issuer.startsWith('http:');

/**
 * The fetch for calls to a provider. Reads each response whole, up to a limit that bounds memory. The signal of
 * openid-client carries the time limit.
 */
export const callsTo =
  ({ issuer, address }: Pick<IdentityProviderClient, 'issuer' | 'address'>): CustomFetch =>
  async (url, { body = null, ...options }) => {
    const target = new URL(url);
    const isElsewhere = address !== undefined && target.origin === new URL(issuer).origin;
    const response = await fetch(isElsewhere ? new URL(target.pathname + target.search, address) : target, {
      ...options,
      body,
      redirect: 'manual',
    });
    const { status, headers } = response;
    return new Response(mayHaveBody(status) ? await limited(response) : null, { status, headers });
  };

/** The Fetch standard's null body statuses. */
const mayHaveBody = (status: number) => ![101, 103, 204, 205, 304].includes(status);

async function limited(response: Response): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > BODY_LIMIT_BYTES) throw new Error('the answer of the identity provider is too large');
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
