import autocannon from 'autocannon';
import { percentile } from './measure.ts';

/** One request and its expected answer. */
export interface Ask {
  method?: 'GET' | 'POST' | 'PUT';
  path: string;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  body?: unknown;
  /** Default 200. */
  status?: number;
  isRight(body: string): boolean;
}

export interface Load {
  /** Answers per second. */
  perSecond: number;
  /** Latencies in ms. */
  p50: number;
  p99: number;
}

export const CONNECTIONS = 32;

/**
 * Sends `amount` requests over `connections` kept connections, one at a time on each; `ask` creates the nth. Rejects on
 * an unexpected answer. `settled` is awaited within the measured time.
 */
export async function load(
  url: string,
  ask: (n: number) => Ask,
  {
    amount,
    connections = CONNECTIONS,
    settled,
  }: { amount: number; connections?: number | undefined; settled?: (() => Promise<unknown>) | undefined },
): Promise<Load> {
  let made = 0;
  let wrong: string | undefined;
  const times: number[] = [];
  const started = performance.now();
  const finished = Promise.withResolvers<autocannon.Result>();
  const options: autocannon.Options = {
    url,
    connections,
    amount,
    // In seconds: on a busy machine the last of many passwords waits long in the queue.
    timeout: 60,
    // It ends at the first sample after the last answer.
    sampleInt: 10,
    requests: [
      {
        setupRequest(request, context: { asked?: Ask }) {
          const asked = ask(made++);
          context.asked = asked;
          const { method = 'GET', path, headers, body } = asked;
          if (body === undefined) return { ...request, method, path, headers: { ...headers } };
          const json = { ...headers, 'Content-Type': 'application/json' };
          return { ...request, method, path, headers: json, body: JSON.stringify(body) };
        },
        onResponse(status, body, { asked }: { asked?: Ask }) {
          if (asked && status === (asked.status ?? 200) && asked.isRight(body)) return;
          wrong ??= `${url}${asked?.path} answered ${status}: ${body.slice(0, 500)}`;
        },
      },
    ],
  };
  const run = autocannon(options, (error, result) => (error ? finished.reject(error) : finished.resolve(result)));
  let answered = started;
  run.on('response', (_client, _status, _bytes, ms) => {
    times.push(ms);
    answered = performance.now();
  });
  const { errors, timeouts } = await finished.promise;
  if (wrong !== undefined) throw new Error(wrong);
  if (errors > 0 || times.length !== amount)
    throw new Error(
      `${url}${ask(made).path}: ${times.length} of ${amount} answered, ${errors} errors, ${timeouts} of them time-outs`,
    );
  if (settled) {
    await settled();
    answered = performance.now();
  }
  return {
    perSecond: amount / ((answered - started) / 1000),
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
  };
}
