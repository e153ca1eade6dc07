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
