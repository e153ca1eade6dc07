/**
 * The key of the object at a URL, without any query; undefined unless the URL begins with `base`, the public URL of the
 * storage.
 */
export function keyAt(address: string | null, base: string): string | undefined {
  const url = address ? URL.parse(address) : null;
  const plain = url ? url.origin + url.pathname : '';
  return plain.startsWith(base) ? plain.slice(base.length) : undefined;
}
