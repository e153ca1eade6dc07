import { request } from 'node:http';
import { text } from 'node:stream/consumers';

/** One request with headers that `fetch` keeps to itself, such as Host. No redirect is followed. */
export const ask = (
  url: string,
  {
    method = 'GET',
    headers = {},
    body = '',
  }: { method?: string; headers?: Record<string, string | string[]>; body?: string } = {},
): Promise<{ status: number; headers: Record<string, string | string[] | undefined>; body: string }> =>
  new Promise((resolve, reject) => {
    const length = body && { 'content-length': Buffer.byteLength(body) };
    request(url, { method, headers: { ...length, ...headers }, agent: false }, async (response) => {
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: await text(response) });
    })
      .on('error', reject)
      .end(body);
  });
