import { imageKeyOf } from '../../entities/index.ts';
import { visibilityOf } from '../parts/object-storage/contract.ts';

/**
 * The key of the object at a URL, without its query. For the URL of a variant: the key of its image. Undefined unless
 * the URL begins with `base`, the public URL of the storage.
 */
export function keyAt(address: string | null, base: string): string | undefined {
  const url = address ? URL.parse(address) : null;
  const plain = url ? url.origin + url.pathname : '';
  return plain.startsWith(base) && visibilityOf(plain.slice(base.length)) === 'public'
    ? imageKeyOf(plain.slice(base.length))
    : undefined;
}

/**
 * The spelling of browsers for the URL of an object, in which profiles are searched: lower-case host, no default port.
 * Any other URL is unchanged.
 */
export const normalizedAddress = <Address extends string | null>(address: Address, base: string): Address | string =>
  address !== null && keyAt(address, base) !== undefined ? new URL(address).href : address;
