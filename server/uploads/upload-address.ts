import { imageKeyOf } from '../../entities/index.ts';
import { visibilityOf } from '../parts/object-storage/contract.ts';

/**
 * The key of the object at a URL, without any query; of the image if the URL is that of a variant; undefined unless the URL begins with `base`, the public URL of the
 * storage.
 */
export function keyAt(address: string | null, base: string): string | undefined {
  const url = address ? URL.parse(address) : null;
  const plain = url ? url.origin + url.pathname : '';
  return plain.startsWith(base) && visibilityOf(plain.slice(base.length)) === 'public'
    ? imageKeyOf(plain.slice(base.length))
    : undefined;
}
