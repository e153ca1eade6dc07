import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** Idle connections are kept, as a proxy in front of the service keeps them. */
const agent = new Agent({ keepAlive: true, maxSockets: 256 });

export interface Answer {
  headers: IncomingHttpHeaders;
  body: string;
}

interface Options {
  /** GET, or POST with a body, unless given. */
  method?: string;
  headers?: Record<string, string>;
  /** Sent as JSON, or as it is if it is bytes. */
  body?: unknown;
  /** 200 unless given. */
  status?: number;
}

/** One request over a kept connection. Rejects unless it is answered with the status that it must have. */
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
