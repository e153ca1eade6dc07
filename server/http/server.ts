import { createServer, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type Koa from 'koa';
import { ServiceError } from '../errors.ts';

const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;
const KEEP_ALIVE_MS = 65_000;
const CLOSE_IDLE_EVERY_MS = 50;

export interface HttpServer {
  /** Rejects when the port is taken. */
  listen(port: number, host: string): Promise<void>;
  /** Takes no new connections and resolves when what is in flight has been answered, or after `ms`. */
  drain(ms: number): Promise<void>;
}

/** Node's HTTP server, which gives up on senders that drip, and refuses malformed requests with our headers. */
export function createHttpServer(app: Koa, headers: Readonly<Record<string, string>>): HttpServer {
  let draining = false;
  const handle = app.callback();
  const server: Server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: 2000,
      requireHostHeader: false,
    },
    (request, response) => {
      // Whoever is served while we leave opens his next connection elsewhere.
      if (draining) response.setHeader('Connection', 'close');
      void handle(request, response);
    },
  );
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => refuse(error, socket, headers));

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.on('error', reject).listen(port, host, () => resolve());
      }),

    async drain(ms) {
      draining = true;
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      // What was in flight keeps its connection, which is idle once it has been answered.
      const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
      const end = setTimeout(() => server.closeAllConnections(), ms);
      await closed;
      clearInterval(idle);
      clearTimeout(end);
    },
  };
}

const statusOfParserError: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

/** What the parser refuses never becomes a request: answered on the bare socket, which then closes. */
function refuse(error: NodeJS.ErrnoException, socket: Socket, headers: Readonly<Record<string, string>>): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = statusOfParserError[error.code ?? ''] ?? 400;
  const body = JSON.stringify(
    new ServiceError('VALIDATION_FAILED', { message: STATUS_CODES[status] ?? 'Bad Request' }),
  );
  const lines = Object.entries({
    ...headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  }).map(([name, value]) => `${name}: ${value}`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
}
