import { randomUUID } from 'node:crypto';
import type { Config } from '../config/index.ts';
import { type ObjectStorage, PENDING, prefixes } from '../parts/object-storage/contract.ts';

/**
 * Sends the CORS preflight of an upload: true if the storage lets pages of the origin send a file to a presigned
 * address.
 */
export async function mayUpload(address: string, origin: string): Promise<boolean> {
  const { headers, body } = await fetch(address, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'PUT',
      'access-control-request-headers': 'content-type',
    },
  });
  await body?.cancel();
  const lets = (name: string, wanted: string) => {
    const allowed = headers.get(name)?.toLowerCase().split(/,\s*/) ?? [];
    return allowed.includes('*') || allowed.includes(wanted);
  };
  return (
    lets('access-control-allow-origin', origin) &&
    lets('access-control-allow-methods', 'put') &&
    lets('access-control-allow-headers', 'content-type')
  );
}

/** The prefixes that nobody may read: private files, and with a scanner those that wait for it. */
export const closedPrefixes = ({ scan }: Pick<Config, 'scan'>): string[] => [
  prefixes.private,
  ...(scan ? [PENDING] : []),
];

/** How a storage refuses strangers. Any other failure, such as 503, says nothing about who may read. */
const REFUSALS = [401, 403, 404];
/** That of Cloudflare R2, with 400. */
const REFUSED_BY_R2 = /<Code>InvalidArgument<\/Code>\s*<Message>Authorization<\/Message>/;

/**
 * Stores an object under a closed prefix, reads it as a stranger by its plain address and by an altered one, and deletes
 * it. Resolves to undefined if all are refused; otherwise to the lowest other status: below 400, a stranger can read.
 */
export async function strangersAt(prefix: string, objects: ObjectStorage): Promise<number | undefined> {
  const key = `${prefix}probe-${randomUUID()}.png`;
  await objects.put(key, Buffer.from('closed'), 'image/png');
  try {
    const address = new URL(await objects.presignGet({ key, expiresInSeconds: 60 }));
    const altered = new URL(address);
    for (const name of ['X-Amz-Signature', 'signature'])
      if (altered.searchParams.has(name)) altered.searchParams.set(name, '0'.repeat(64));
    address.search = '';
    const statuses = await Promise.all([String(address), objects.publicUrl('') + key, String(altered)].map(statusOf));
    return statuses.filter((status) => !REFUSALS.includes(status)).sort((a, b) => a - b)[0];
  } finally {
    await objects.delete(key).catch(() => undefined);
  }
}

async function statusOf(address: string): Promise<number> {
  const response = await fetch(address);
  if (response.status === 400 && REFUSED_BY_R2.test(await response.text())) return 403;
  await response.body?.cancel();
  return response.status;
}
