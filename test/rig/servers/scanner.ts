import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { eicar, malware } from './clamd.ts';

/** What it does with a file: looks at it, never answers, or answers with this status and body. */
export type ScannerBehaviour = 'work' | 'hang' | { status: number; body: string };

export interface HttpScanner {
  readonly url: string;
  /** The sizes of the files that arrived, oldest first. */
  readonly received: number[];
  /** The headers Authorization so far. */
  readonly authorizations: string[];
  behave(behaviour: ScannerBehaviour): void;
  /** Called with each file before it is answered. */
  onFile(work: (bytes: Buffer) => Promise<void> | void): void;
  /** Refuses connections until up(), on the same port. */
  down(): Promise<void>;
  up(): Promise<void>;
  stop(): Promise<void>;
}

/** A scanner over HTTP: POST of the bytes, answered with `{clean, finding?}`. */
export async function startHttpScanner({ tls }: { tls?: { cert: Buffer; key: Buffer } } = {}): Promise<HttpScanner> {
  const received: number[] = [];
  const authorizations: string[] = [];
  let behaviour: ScannerBehaviour = 'work';
  let work: (bytes: Buffer) => Promise<void> | void = () => undefined;
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const bytes = Buffer.concat(pieces);
    received.push(bytes.length);
    if (request.headers.authorization) authorizations.push(request.headers.authorization);
    await work(bytes);
    if (behaviour === 'hang') return;
    const isInfected = bytes.includes(malware) || bytes.equals(eicar);
    const answer =
      behaviour === 'work'
        ? { status: 200, body: JSON.stringify(isInfected ? { clean: false, finding: 'Rig-Malware' } : { clean: true }) }
        : behaviour;
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
  };
  const listener = (request: IncomingMessage, response: ServerResponse) =>
    void handle(request, response).catch(() => response.destroy());
  const create = (): Server => (tls ? createTlsServer(tls, listener) : createServer(listener));
  let port = 0;
  let server: Server | undefined;
  const up = async () => {
    server ??= create().listen(port, '127.0.0.1');
    if (!server.listening) await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
  };
  const down = async () => {
    const ending = server;
    server = undefined;
    if (!ending) return;
    ending.closeAllConnections();
    ending.close();
    await once(ending, 'close');
  };
  await up();
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}/scan`,
    received,
    authorizations,
    behave(next) {
      behaviour = next;
    },
    onFile(next) {
      work = next;
    },
    up,
    down,
    stop: down,
  };
}
