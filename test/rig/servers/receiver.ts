import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

/** A delivery as a receiver gets it. */
export interface Received {
  path: string;
  /** The header `webhook-id`. */
  id: string;
  headers: Record<string, string>;
  /** As sent. */
  body: string;
  /** By `performance.now()`. */
  at: number;
  // biome-ignore lint/suspicious/noExplicitAny: a black box: what is in it is for the test to say
  event: any;
}

/** Answers a delivery; without an answer it hangs. */
export type Answer = (response: ServerResponse, received: Received, request: IncomingMessage) => void;

export const answering =
  (status: number, body = '', headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, headers).end(body);

export interface Receiver {
  url: string;
  port: number;
  /** What has arrived, in order. */
  received: Received[];
  /** From now on. */
  answer: Answer;
  stop(): Promise<void>;
}

/** A receiver of webhooks on 127.0.0.1, by default with the status 204. */
export async function startReceiver({
  tls,
  answer = answering(204),
}: {
  tls?: { cert: Buffer; key: Buffer };
  answer?: Answer;
} = {}): Promise<Receiver> {
  const received: Received[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const headers = request.headers as Record<string, string>;
    const one = {
      path: request.url ?? '',
      id: headers['webhook-id'] ?? '',
      headers,
      body,
      at: performance.now(),
      event: request.method === 'POST' && body.startsWith('{') ? JSON.parse(body) : undefined,
    };
    received.push(one);
    receiver.answer(response, one, request);
  };
  const listener = (request: IncomingMessage, response: ServerResponse) =>
    void handle(request, response).catch(() => undefined);
  const server: Server = tls ? createTlsServer(tls, listener) : createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const receiver: Receiver = {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    received,
    answer,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return receiver;
}
