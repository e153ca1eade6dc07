import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { callsTo } from '../../../server/parts/identity-provider/calls.ts';
import { httpScanner } from '../../../server/parts/scanner/http.ts';

/** A server of ours that another party has told to send us elsewhere. */
const asked: string[] = [];
const server = createServer((request, response) => {
  asked.push(request.url ?? '');
  request.resume();
  if (request.url === '/elsewhere') response.end('{"clean":true}');
  else response.writeHead(307, { location: '/elsewhere' }).end();
});
let url = '';

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  asked.length = 0;
});
afterAll(() => server.close());

const scanned = { bytes: Readable.from([Buffer.from('a')]), size: 1 };

test.each<[string, () => Promise<unknown>]>([
  [
    'an identity provider',
    async () => {
      const call = callsTo({ issuer: url });
      const { status } = await call(`${url}/token`, {
        method: 'POST',
        body: 'code=x',
        headers: {},
        redirect: 'follow',
      } as never);
      expect(status).toBe(307);
    },
  ],
  [
    'a scanner',
    async () => {
      const verdict = await httpScanner(new URL(`${url}/scan`))
        .scan(scanned, 5000)
        .catch(() => undefined);
      expect(verdict).not.toEqual({ result: 'clean' });
    },
  ],
])('a redirect of %s is not followed', async (_, call) => {
  await call();
  expect(asked).toHaveLength(1);
});
