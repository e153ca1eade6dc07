import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export type Handler = (request: {
  url: URL;
  headers: IncomingMessage['headers'];
  body: string;
}) => Answer | Promise<Answer>;

/** A server's answer, or none at all, or a closed connection. */
export type Answer =
  | { status?: number; type?: string; body: unknown; headers?: Record<string, string> }
  | 'hang'
  | 'drop';

export interface TestServer {
  url: string;
  close(): Promise<void>;
}

/** A plain HTTP server on a loopback address. */
export async function serve(handler: Handler): Promise<TestServer> {
  const server = createServer((request, response) => {
    answer(handler, request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(handler: Handler, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const said = await handler({ url, headers: request.headers, body: await text(request) });
  if (said === 'hang') return;
  if (said === 'drop') {
    response.destroy();
    return;
  }
  const { status = 200, type = 'application/json', body, headers } = said;
  response.writeHead(status, { 'content-type': type, ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}
