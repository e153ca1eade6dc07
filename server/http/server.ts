import { once } from 'node:events';
import { createServer, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import type Koa from 'koa';
import { ServiceError } from '../errors.ts';
import type { Log } from '../telemetry/log.ts';
import { breakBody, MAX_BODY_MS } from './bodies/body.ts';
import { oneByOne } from './bodies/one-by-one.ts';
import { closeAndLinger } from './bodies/unread-body.ts';
import { codeOfStatus } from './failures.ts';

const HEADERS_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 65_000;
/** The maximum time in which a client reads nothing of its response: the response stays in memory. */
const STALLED_MS = 120_000;
const CLOSE_IDLE_EVERY_MS = 50;
/** The maximum time that new requests may delay the end of listening. */
const CATCH_UP_MS = 500;

interface HttpServer {
  /** Rejects if the port is taken. */
  listen(port: number, host: string): Promise<void>;
  /**
   * Listens for `lingerMs` more, then until requests in flight end, for at most half of `withinMs`: a load balancer
   * cuts off requests to an instance that does not listen. Resolves when all have ended, or after `withinMs`.
   */
  drain(options: { lingerMs: number; withinMs: number }): Promise<void>;
}

/** Node's HTTP server with time limits for slow clients. It refuses malformed requests with our headers. */
export function createHttpServer(
  app: Koa,
  headers: Headers,
  log: Pick<Log, 'error'>,
  stalledMs = STALLED_MS,
): HttpServer {
  const { handle, lastOf } = oneByOne(app.callback());
  const server: Server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: MAX_BODY_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: 2000,
      requireHostHeader: false,
    },
    handle,
  );
  server.setTimeout(stalledMs);
  const connections = new Set<Socket>();
  server.on('connection', (socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    // Node takes its own listener from a connection with a CONNECT; an error without one would end the process.
    socket.on('error', () => undefined);
  });

  const refused = new WeakSet<Socket>();
  /**
   * Ends a connection that received something other than a request. Earlier requests get their own responses first; so
   * does one with a body broken by it.
   */
  const refuse = async (socket: Socket, status: number): Promise<void> => {
    if (refused.has(socket)) return;
    refused.add(socket);
    const last = lastOf(socket);
    if (last && !last.req.complete) breakBody(last.req, errorOf(status));
    await last?.answered;
    if (!socket.writable) return;
    socket.write(textOf(status, headers));
    closeAndLinger(socket);
  };

  // Requests that Node would answer without our headers, or not at all.
  server.on('checkExpectation', (_request, response) => {
    const refusal = refusalOf(417, headers);
    response.writeHead(417, refusal.headers).end(refusal.body);
  });
  // Node does not continue a long response that a CONNECT follows: it ends with the connection, after STALLED_MS.
  server.on('connect', (_request, socket: Socket) => refuse(socket, 404));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET') socket.destroy();
    else refuse(socket, statusOfParserError[error.code ?? ''] ?? 400);
  });

  return {
    async listen(port, host) {
      const listening = once(server, 'listening');
      server.listen(port, host);
      await listening;
      server.on('error', (err) => log.error({ err }, 'connections cannot be accepted'));
    },

    async drain({ lingerMs, withinMs }) {
      const end = setTimeout(() => server.closeAllConnections(), withinMs);
      await delay(lingerMs);
      // A request in flight keeps its connection, which becomes idle once the request has been answered.
      const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
      await Promise.race([Promise.all([...connections].map(closed)), delay(withinMs / 2, undefined, { ref: false })]);
      await caughtUp(server);
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      clearInterval(idle);
      clearTimeout(end);
    },
  };
}

const closed = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve));

/**
 * Resolves after a turn of the event loop without a new connection or request. Closing the server earlier would reset
 * connections that the kernel has accepted and Node has not.
 */
async function caughtUp(server: Server): Promise<void> {
  let arrivals = 0;
  const count = () => {
    arrivals++;
  };
  server.on('connection', count).on('request', count);
  const end = performance.now() + CATCH_UP_MS;
  let before: number;
  do {
    before = arrivals;
    // Between the check phases of two turns, Node reads everything that is readable.
    await nextTurn();
    await nextTurn();
  } while (arrivals > before && performance.now() < end);
  server.off('connection', count).off('request', count);
}

const statusOfParserError: Record<string, number> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

type Headers = Readonly<Record<string, string>>;

const errorOf = (status: number) =>
  new ServiceError(codeOfStatus[status] ?? 'VALIDATION_FAILED', { message: STATUS_CODES[status] ?? 'Bad Request' });

function refusalOf(status: number, headers: Headers): { headers: Record<string, string>; body: string } {
  const body = `${JSON.stringify(errorOf(status))}\n`;
  return {
    headers: {
      ...headers,
      'Cache-Control': 'no-store',
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': String(Buffer.byteLength(body)),
      Connection: 'close',
    },
    body,
  };
}

/** The raw response for input that never becomes a request, written to the socket. */
function textOf(status: number, headers: Headers): string {
  const refusal = refusalOf(status, headers);
  const lines = Object.entries(refusal.headers).map(([name, value]) => `${name}: ${value}`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('\r\n')}\r\n\r\n${refusal.body}`;
}
