import { createServer, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import type Koa from 'koa';
import { ServiceError } from '../errors.ts';

const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;
const KEEP_ALIVE_MS = 65_000;
/** The longest that a client may read nothing of its answer, which stays in memory until it does. */
const STALLED_MS = 120_000;
const CLOSE_IDLE_EVERY_MS = 50;
/** The longest that new requests may delay the end of listening. */
const CATCH_UP_MS = 500;

interface HttpServer {
  /** Rejects when the port is taken. */
  listen(port: number, host: string): Promise<void>;
  /**
   * Listens for `lingerMs` more, for clients that do not know yet that this process ends, then takes no new connections
   * and resolves when every request has been answered, or `withinMs` after the call. No request that has reached this
   * machine by the end of `lingerMs` is cut off, even if it is still in the kernel's queue.
   */
  drain(options: { lingerMs: number; withinMs: number }): Promise<void>;
}

/** Node's HTTP server, with time limits for slow clients; it refuses malformed requests with our headers. */
export function createHttpServer(app: Koa, headers: Headers): HttpServer {
  const server: Server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: 2000,
      requireHostHeader: false,
    },
    app.callback(),
  );
  server.setTimeout(STALLED_MS);
  // Requests that Node would answer by itself, without our headers, or not at all.
  server.on('checkExpectation', (_request, response) => {
    const refusal = refusalOf(417, headers);
    response.writeHead(417, refusal.headers).end(refusal.body);
  });
  server.on('connect', (_request, socket: Socket) => refuse(socket, 404, headers));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET') socket.destroy();
    else refuse(socket, statusOfParserError[error.code ?? ''] ?? 400, headers);
  });

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.on('error', reject).listen(port, host, () => resolve());
      }),

    async drain({ lingerMs, withinMs }) {
      const end = setTimeout(() => server.closeAllConnections(), withinMs);
      await delay(lingerMs);
      await caughtUp(server);
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      // A request in flight keeps its connection, which is idle once the request has been answered.
      const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
      await closed;
      clearInterval(idle);
      clearTimeout(end);
    },
  };
}

/**
 * Resolves once a turn of the event loop brings neither a connection nor a request: closing the server would reset
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
    // Between the check phases of two turns, everything that is readable is read.
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

function refusalOf(status: number, headers: Headers): { headers: Record<string, string>; body: string } {
  const message = STATUS_CODES[status] ?? 'Bad Request';
  const body = JSON.stringify(new ServiceError(status === 404 ? 'NOT_FOUND' : 'VALIDATION_FAILED', { message }));
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

/** Answers input that never becomes a request, on the bare socket, which then closes. */
function refuse(socket: Socket, status: number, headers: Headers): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const refusal = refusalOf(status, headers);
  const lines = Object.entries(refusal.headers).map(([name, value]) => `${name}: ${value}`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('\r\n')}\r\n\r\n${refusal.body}`);
}
