/*
 * A scanner over HTTP: POST of the bytes, answered with 200 and `{"clean": true}`, or `{"clean": false, "finding": "…"}`.
 * Redirects are not followed.
 */

import { once } from 'node:events';
import { type IncomingMessage, request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pLimit from 'p-limit';
import { z } from 'zod';
import { withinDeadline } from '../deadline.ts';
import { findingIn, rejects, type Scanner, type SentFile, shared, type Verdict } from './contract.ts';

const AT_ONCE = 8;
const PING_MS = 3000;
const MAX_ANSWER = 64 * 1024;
const what = 'the scanner';
const PROBE = Buffer.from('account service');

const answerForm = z.object({ clean: z.boolean(), finding: z.string().optional() });

export function httpScanner(url: URL): Scanner {
  const limit = pLimit(AT_ONCE);
  const [request, connected] = url.protocol === 'https:' ? [tlsRequest, 'secureConnect'] : [plainRequest, 'connect'];

  const post = async (signal: AbortSignal, { bytes, size }: SentFile): Promise<{ status: number; text: string }> => {
    signal.throwIfAborted();
    const headers = { 'content-type': 'application/octet-stream', 'content-length': String(size) };
    const sent = request(url, { method: 'POST', headers, signal });
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
    // The scanner may answer before the end of a file; without an answer `answered` rejects.
    pipeline(bytes, sent).catch(() => undefined);
    try {
      const [response] = await answered;
      return { status: response.statusCode ?? 0, text: await beginningOf(response) };
    } finally {
      sent.destroy();
    }
  };

  /** Sends nothing. */
  const connect = (signal: AbortSignal): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const sent = request(url, { method: 'POST', agent: false, signal });
    sent.on('error', reject).once('socket', (socket) => socket.once(connected, resolve));
    return promise.finally(() => sent.destroy());
  };

  return {
    async scan(file, withinMs) {
      try {
        const within = { ms: withinMs, what };
        const { status, text } = await withinDeadline(within, (signal) => limit(() => post(signal, file)));
        // A proxy answers so for a scanner that does not work.
        if (status >= 500) throw new Error(`the scanner answered ${status}`);
        return verdictIn(status, text);
      } finally {
        file.bytes.destroy();
      }
    },

    // At once: without a turn.
    ping: shared(async () => {
      const probe = { bytes: Readable.from([PROBE]), size: PROBE.length };
      const { status } = await withinDeadline({ ms: PING_MS, what }, (signal) => post(signal, probe));
      if (status >= 500) throw new Error(`the scanner answered ${status}`);
    }),

    // A busy scanner, or the proxy before it, may answer late or 503, but takes connections.
    isAway: shared(() => rejects(withinDeadline({ ms: PING_MS, what }, connect))),

    takes: async () => true,
  };
}

async function beginningOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of response.setEncoding('utf8') as AsyncIterable<string>) {
    text += piece;
    if (text.length > MAX_ANSWER) break;
  }
  return text;
}

function verdictIn(status: number, text: string): Verdict {
  const answer = status === 200 ? answerForm.safeParse(parsed(text)).data : undefined;
  if (!answer) return { result: 'unknown', answer: `${status} ${text.slice(0, 200)}` };
  return answer.clean ? { result: 'clean' } : { result: 'infected', finding: findingIn(answer.finding ?? '') };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
