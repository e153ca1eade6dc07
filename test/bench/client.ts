import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** Keeps idle connections, like a proxy in front of the service. */
const agent = new Agent({ keepAlive: true, maxSockets: 256 });

export interface Answer {
  headers: IncomingHttpHeaders;
  body: string;
}

interface Options {
  /** Default: GET, or POST with a body. */
  method?: string;
  headers?: Record<string, string>;
  /** Sent as JSON; bytes are sent unchanged. */
  body?: unknown;
  /** Default 200. */
  status?: number;
}

/** One request over a kept connection. Rejects on any other status. */
export async function call(url: string, { method, headers = {}, body, status = 200 }: Options = {}): Promise<Answer> {
  const hasBody = body !== undefined;
  const isBytes = body instanceof Uint8Array;
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  request(url, {
    agent,
    method: method ?? (hasBody ? 'POST' : 'GET'),
    headers: { ...(hasBody && { 'Content-Type': 'application/json' }), ...headers },
  })
    .once('response', async (response) => {
      const answer = await text(response);
      if (response.statusCode === status) resolve({ headers: response.headers, body: answer });
      else reject(new Error(`${url} answered ${response.statusCode}: ${answer}`));
    })
    .once('error', reject)
    .end(isBytes || !hasBody ? body : JSON.stringify(body));
  return promise;
}
