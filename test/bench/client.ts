import { Agent, type IncomingHttpHeaders, type RequestOptions, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** Idle connections are kept, as a proxy in front of the service keeps them. */
const agent = new Agent({ keepAlive: true, maxSockets: 256 });

export interface Answer {
  headers: IncomingHttpHeaders;
  body: string;
}

interface Options {
  headers?: Record<string, string>;
  /** Sent as JSON, by POST. */
  body?: unknown;
}

/** One request over a kept connection. Rejects unless it is answered with 200. */
export async function call(url: string, { headers = {}, body }: Options = {}): Promise<Answer> {
  const options: RequestOptions = { agent, headers };
  if (body !== undefined) {
    options.method = 'POST';
    options.headers = { ...headers, 'Content-Type': 'application/json' };
  }
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  request(url, options, async (response) => {
    const answer = await text(response);
    if (response.statusCode === 200) resolve({ headers: response.headers, body: answer });
    else reject(new Error(`${url} answered ${response.statusCode}: ${answer}`));
  })
    .once('error', reject)
    .end(body === undefined ? undefined : JSON.stringify(body));
  return promise;
}

/** Does the work again and again, so many at a time, while `goesOn` says so; resolves to how often it was done. */
export async function repeat(
  concurrency: number,
  goesOn: (done: number) => boolean,
  work: () => Promise<unknown>,
): Promise<number> {
  let begun = 0;
  const worker = async () => {
    while (goesOn(begun)) {
      begun++;
      await work();
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return begun;
}
