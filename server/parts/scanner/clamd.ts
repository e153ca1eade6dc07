/*
 * The protocol of clamd (docs.clamav.net/manual/Usage/Scanning.html): `zINSTREAM\0`, then pieces with their length before
 * them, then a length of 0. clamd closes each connection after its answer, also before the end of a file.
 */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import pLimit from 'p-limit';
import { withinDeadline } from '../deadline.ts';
import { findingIn, rejects, type Scanner, type SentFile, shared, type Verdict } from './contract.ts';

const DEFAULT_PORT = 3310;
/** Fewer than the threads that clamd has by default (MaxThreads 10). */
const AT_ONCE = 8;
const PING_MS = 3000;
/** How soon clamd refuses a length that it does not take. */
const REFUSAL_MS = 1000;
const MAX_ANSWER = 64 * 1024;

const what = 'clamd';
const limitExceeded = 'size limit exceeded';

export function clamdScanner({ hostname, port }: URL): Scanner {
  const limit = pLimit(AT_ONCE);
  const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || DEFAULT_PORT };

  /** Ends the connection when the work ends, or the time is over. */
  const withConnection = async <T>(signal: AbortSignal, work: (socket: Socket) => Promise<T>): Promise<T> => {
    signal.throwIfAborted();
    const socket = connect({ ...address, signal });
    // Reads and writes reject with the error.
    socket.on('error', () => undefined);
    try {
      return await work(socket);
    } finally {
      socket.destroy();
    }
  };
  const inTurn = <T>(ms: number, work: (socket: Socket) => Promise<T>): Promise<T> =>
    withinDeadline({ ms, what }, (signal) => limit(() => withConnection(signal, work)));

  // At once: a scanner with all its turns taken is not away.
  const ping = shared(() =>
    withinDeadline({ ms: PING_MS, what }, (signal) =>
      withConnection(signal, async (socket) => {
        const answer = answerOf(socket);
        socket.write('zPING\0');
        if (plain(await answer) !== 'PONG') throw new Error(`clamd answered ${JSON.stringify(await answer)}`);
      }),
    ),
  );

  return {
    async scan(file, withinMs) {
      try {
        return await inTurn(withinMs, async (socket) => verdictIn(await send(socket, file)));
      } finally {
        file.bytes.destroy();
      }
    },

    ping,
    isAway: () => rejects(ping()),

    takes: (size) =>
      inTurn(PING_MS, async (socket) => {
        const answer = answerOf(socket);
        socket.write(Buffer.concat([Buffer.from('zINSTREAM\0'), lengthOf(Math.min(size, 2 ** 32 - 1))]));
        const waited = Promise.withResolvers<string>();
        const timer = setTimeout(() => waited.resolve(''), REFUSAL_MS);
        const refused = (await Promise.race([answer, waited.promise])).includes(limitExceeded);
        clearTimeout(timer);
        answer.catch(() => undefined);
        return !refused;
      }),
  };
}

async function send(socket: Socket, { bytes }: SentFile): Promise<string> {
  let isAnswered = false;
  const answer = answerOf(socket).finally(() => {
    isAnswered = true;
  });
  // The answer says why a write failed.
  answer.catch(() => undefined);
  socket.write('zINSTREAM\0');
  for await (const piece of bytes as AsyncIterable<Buffer>) {
    if (isAnswered) break;
    socket.write(lengthOf(piece.length));
    if (!socket.write(piece)) await Promise.race([once(socket, 'drain').catch(() => undefined), answer]);
  }
  if (!isAnswered) socket.write(lengthOf(0));
  return answer;
}

function lengthOf(bytes: number): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes);
  return length;
}

/** What clamd sent until the connection ended. Its last words count also if a write failed after them. */
const answerOf = (socket: Socket): Promise<string> =>
  new Promise((resolve, reject) => {
    let answer = '';
    let failure: Error | undefined;
    socket
      .setEncoding('utf8')
      .on('data', (piece) => {
        answer += piece;
        if (answer.length > MAX_ANSWER) socket.destroy(new Error('clamd answered too much'));
      })
      .on('error', (error) => {
        failure = error;
      })
      .on('end', () => resolve(answer))
      .on('close', () => (failure && answer === '' ? reject(failure) : resolve(answer)));
  });

const plain = (answer: string): string => answer.replaceAll('\0', '').trim();

/** `stream: OK`, `stream: Eicar-Test-Signature FOUND`, or a sentence that ends with ERROR. */
export function verdictIn(text: string): Verdict {
  // Each complete answer ends with NUL.
  if (!text.endsWith('\0')) throw new Error('clamd closed the connection without an answer');
  const answer = plain(text);
  if (answer === 'stream: OK') return { result: 'clean' };
  const [, finding] = /^stream: (.+) FOUND$/s.exec(answer) ?? [];
  if (finding !== undefined) return { result: 'infected', finding: findingIn(finding) };
  return { result: 'unknown', answer };
}
