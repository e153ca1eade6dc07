import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** Keeps idle connections, like a proxy in front of the service. */
const agent = new Agent({ keepAlive: true, maxSockets: 4096 });

export interface Answer {
  status: number;
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
export async function call(url: string, { status = 200, ...options }: Options = {}): Promise<Answer> {
  const answer = await send(url, options);
  if (answer.status !== status) throw new Error(`${url} answered ${answer.status}: ${answer.body}`);
  return answer;
}

/** One request over a kept connection, with any answer. */
export async function send(url: string, { method, headers = {}, body }: Omit<Options, 'status'> = {}): Promise<Answer> {
  const hasBody = body !== undefined;
  const isBytes = body instanceof Uint8Array;
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  request(url, {
    agent,
    method: method ?? (hasBody ? 'POST' : 'GET'),
    headers: { ...(hasBody && { 'Content-Type': 'application/json' }), ...headers },
  })
    .once('response', async (response) => {
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: await text(response) });
    })
    .once('error', reject)
    .end(isBytes || !hasBody ? body : JSON.stringify(body));
  return promise;
}
