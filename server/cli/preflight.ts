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

/**
 * Stores an object under a closed prefix, reads it as a stranger, and deletes it. Resolves to the statuses that a
 * stranger gets: by its plain address, and by an altered one.
 */
export async function strangersAt(prefix: string, objects: ObjectStorage): Promise<number[]> {
  const key = `${prefix}probe-${randomUUID()}.png`;
  await objects.put(key, Buffer.from('closed'), 'image/png');
  try {
    const address = new URL(await objects.presignGet({ key, expiresInSeconds: 60 }));
    const altered = new URL(address);
    for (const name of ['X-Amz-Signature', 'signature'])
      if (altered.searchParams.has(name)) altered.searchParams.set(name, '0'.repeat(64));
    address.search = '';
    return await Promise.all([String(address), objects.publicUrl('') + key, String(altered)].map(statusOf));
  } finally {
    await objects.delete(key).catch(() => undefined);
  }
}

async function statusOf(address: string): Promise<number> {
  const { status, body } = await fetch(address);
  await body?.cancel();
  return status;
}
