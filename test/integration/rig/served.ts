import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createApp } from '../../../server/http/app.ts';
import type { OpenedRules } from './rules.ts';

export interface Sent {
  headers?: Record<string, string>;
  body?: string | FormData;
  json?: unknown;
  /** The token of a session. */
  session?: string;
}

/** The application over HTTP, on a free port. `stop` begins its shutdown. */
export async function served({ parts, config, texts, log, ...rules }: OpenedRules) {
  const stopping = new AbortController();
  const given = { rules, ...parts, devIdentityProvider: undefined, texts, log, stopping: stopping.signal };
  const server = createServer(createApp(config, given).callback());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  /** A call as a browser or another client sends it: only with these headers. */
  const call = async (method: string, path: string, { headers = {}, json, session, ...sent }: Sent = {}) => {
    const body = json === undefined ? sent.body : JSON.stringify(json);
    const encoded = new Response(body ?? null);
    const bytes = Buffer.from(await encoded.arrayBuffer());
    const type = json === undefined ? encoded.headers.get('content-type') : 'application/json';
    const outgoing = request({
      port,
      host: '127.0.0.1',
      method,
      path,
      agent: false,
      headers: {
        ...(body !== undefined && { 'content-length': bytes.length, 'content-type': type ?? '' }),
        ...(session !== undefined && { cookie: `auth_session=${session}` }),
        ...headers,
      },
    });
    outgoing.end(bytes);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    const content = await text(response);
    const isJson = response.headers['content-type']?.startsWith('application/json') && content !== '';
    return {
      status: response.statusCode,
      headers: response.headers,
      text: content,
      data: isJson ? JSON.parse(content) : undefined,
    };
  };

  return {
    call,
    stop: () => stopping.abort(),
    async close(): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
