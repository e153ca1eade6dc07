import { request } from 'node:http';
import { request as requestOverTls } from 'node:https';
import { text } from 'node:stream/consumers';

/**
 * One request with headers that `fetch` does not allow, such as Host, over TLS with one authority's certificates (PEM),
 * from one of this machine's addresses. Follows no redirect.
 */
export const ask = (
  url: string,
  {
    method = 'GET',
    headers = {},
    body = '',
    ca,
    localAddress,
  }: {
    method?: string;
    headers?: Record<string, string | string[]>;
    body?: string | Buffer;
    ca?: Buffer;
    localAddress?: string;
  } = {},
): Promise<{ status: number; headers: Record<string, string | string[] | undefined>; body: string }> =>
  new Promise((resolve, reject) => {
    const length = body.length > 0 && { 'content-length': Buffer.byteLength(body) };
    const send = url.startsWith('https:') ? requestOverTls : request;
    const options = {
      method,
      headers: { ...length, ...headers },
      agent: false,
      ...(ca && { ca }),
      ...(localAddress && { localAddress }),
    };
    send(url, options, async (response) => {
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: await text(response) });
    })
      .on('error', reject)
      .end(body);
  });
