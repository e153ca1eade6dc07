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
