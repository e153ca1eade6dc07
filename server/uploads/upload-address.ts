/**
 * The key of the object at an address, whatever query a client has added; undefined where the address does not begin with
 * `base`, the public address of the storage.
 */
export function keyAt(address: string | null, base: string): string | undefined {
  const url = address ? URL.parse(address) : null;
  const plain = url ? url.origin + url.pathname : '';
  return plain.startsWith(base) ? plain.slice(base.length) : undefined;
}
