import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { createWebhookSender, type Resolve } from '../../../server/parts/webhook-sender/index.ts';
import { createAuthority } from '../../rig/servers/certificates.ts';
import { freePort } from '../../rig/servers/port.ts';
import { answering, type Receiver, startReceiver } from '../../rig/servers/receiver.ts';
import { until } from '../../rig/until.ts';

/** The sender of webhooks: where it connects to, and what it takes from a receiver. */

const LOOPBACK = ['127.0.0.0/8'];
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const senderOf = ({
  allowed = LOOPBACK,
  production = false,
  resolve,
}: {
  allowed?: string[];
  production?: boolean;
  resolve?: Resolve;
} = {}) => {
  const sender = createWebhookSender({ production, webhooks: { allowed, concurrency: 8 } }, resolve);
  stops.push(() => sender.close());
  return sender;
};

const receiving = async (...given: Parameters<typeof startReceiver>): Promise<Receiver> => {
  const receiver = await startReceiver(...given);
  stops.push(() => receiver.stop());
  return receiver;
};

const send = (sender: ReturnType<typeof senderOf>, url: string) =>
  sender.send({ url, headers: { 'content-type': 'application/json' }, body: '{"a":"ä"}' });

test('the body arrives as it was given', async () => {
  const receiver = await receiving({ answer: answering(200, 'fine') });
  expect(await send(senderOf(), `${receiver.url}/hook?a=1`)).toMatchObject({ status: 200, answer: 'fine' });
  expect(receiver.received).toMatchObject([{ path: '/hook?a=1', body: '{"a":"ä"}' }]);
});

test.each([
  'http://127.0.0.1',
  'http://localhost',
  'http://2130706433',
  'http://0x7f.1',
  'http://0177.0.0.1',
  'http://127.1',
  'http://0',
  'http://[::1]',
  'http://[::ffff:127.0.0.1]',
  'http://[::ffff:7f00:1]',
])('a connection to this machine is refused: %s', async (host) => {
  const receiver = await receiving();
  expect(await send(senderOf({ allowed: [] }), `${host}:${receiver.port}`)).toEqual({ error: 'forbidden-address' });
  expect(receiver.received).toEqual([]);
});

// checks: 78
test('a name with one forbidden address is refused, whichever comes first', async () => {
  const receiver = await receiving();
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '169.254.169.254', family: 4 },
  ];
  for (const list of [addresses, addresses.toReversed()]) {
    const sender = senderOf({ resolve: async () => list });
    expect(await send(sender, `http://mixed.test:${receiver.port}`)).toEqual({ error: 'forbidden-address' });
  }
  expect(receiver.received).toEqual([]);
});

// checks: 78
test('a name is resolved once: a second answer of the name server is never connected to', async () => {
  const [honest, hostile] = [await receiving(), await receiving()];
  let lookups = 0;
  const sender = senderOf({
    allowed: ['127.0.0.1/32'],
    async resolve() {
      lookups++;
      return [{ address: lookups === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }];
    },
  });
  expect(await send(sender, `http://rebinding.test:${honest.port}`)).toMatchObject({ status: 204 });
  expect(lookups).toBe(1);
  expect(await send(sender, `http://rebinding.test:${honest.port}`)).toEqual({ error: 'forbidden-address' });
  expect([honest.received.length, hostile.received.length]).toEqual([1, 0]);
});

test('a name that is unknown to the system reaches its checked address', async () => {
  const receiver = await receiving();
  const sender = senderOf({ resolve: async () => [{ address: '127.0.0.1', family: 4 }] });
  expect(await send(sender, `http://does-not-exist.invalid:${receiver.port}`)).toMatchObject({ status: 204 });
  expect(receiver.received[0]?.headers).toMatchObject({ host: `does-not-exist.invalid:${receiver.port}` });
  expect(await send(senderOf(), `http://does-not-exist.invalid:${receiver.port}`)).toEqual({ error: 'unknown-host' });
});

// checks: 78
test('a redirect is not followed', async () => {
  const target = await receiving();
  const receiver = await receiving({ answer: answering(307, '', { location: target.url }) });
  expect(await send(senderOf(), receiver.url)).toMatchObject({ status: 307 });
  expect(target.received).toEqual([]);
});

test('a proxy of the environment is not used', async () => {
  const [proxy, receiver] = [await receiving(), await receiving()];
  const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'NODE_USE_ENV_PROXY'];
  const before = names.map((name) => [name, process.env[name]] as const);
  stops.push(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
  for (const name of names) process.env[name] = name === 'NODE_USE_ENV_PROXY' ? '1' : proxy.url;
  expect(await send(senderOf(), receiver.url)).toMatchObject({ status: 204 });
  expect([proxy.received.length, receiver.received.length]).toEqual([0, 1]);
});

test('of a long answer 64 kB are read, and 1000 characters are kept', async () => {
  const written = { bytes: 0 };
  const receiver = await receiving({
    answer(response) {
      response.writeHead(200);
      const timer = setInterval(() => {
        response.write('x'.repeat(8192));
        written.bytes += 8192;
      }, 1);
      response.on('close', () => clearInterval(timer));
    },
  });
  const answer = await send(senderOf(), receiver.url);
  expect(answer).toMatchObject({ status: 200, answer: 'x'.repeat(1000) });
  expect(written.bytes).toBeLessThan(1024 ** 2);
});

test('an answer is cut between characters', async () => {
  const receiver = await receiving({ answer: answering(200, '😀'.repeat(2000)) });
  expect(await send(senderOf(), receiver.url)).toMatchObject({ answer: '😀'.repeat(1000) });
});

test('a receiver that hangs is given up after 15 seconds, also one that sends a byte now and then', async () => {
  const silent = await receiving({ answer: () => undefined });
  const slow = await receiving({
    answer(response) {
      const timer = setInterval(() => response.socket?.write('H'), 1000);
      response.on('close', () => clearInterval(timer));
    },
  });
  const began = performance.now();
  const results = await Promise.all([send(senderOf(), silent.url), send(senderOf(), slow.url)]);
  const seconds = (performance.now() - began) / 1000;
  expect(results[0]).toEqual({ error: 'timeout' });
  expect(['timeout', 'connection']).toContain((results[1] as { error: string }).error);
  expect(seconds).toBeGreaterThan(14);
  expect(seconds).toBeLessThan(17);
});

test('a name server that hangs counts into the 15 seconds', async () => {
  const sender = senderOf({ resolve: () => new Promise(() => undefined) });
  expect(await send(sender, 'http://slow-name.test')).toEqual({ error: 'timeout' });
});

test('a connection that is closed or refused is an error', async () => {
  const receiver = await receiving({ answer: (response) => response.destroy() });
  expect(await send(senderOf(), receiver.url)).toEqual({ error: 'connection' });
  expect(await send(senderOf(), `http://127.0.0.1:${await freePort()}`)).toEqual({ error: 'connection' });
});

test('an answer that changes the protocol is an error', async () => {
  const server = createServer((_, { socket }) => {
    socket?.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  stops.push(() => server.close());
  expect(await send(senderOf(), `http://127.0.0.1:${port}`)).toEqual({ error: 'connection' });
});

test('concurrent requests to a name share its look-up, and four look-ups run at once', async () => {
  const receiver = await receiving();
  const asked: string[] = [];
  const answers: (() => void)[] = [];
  const sender = senderOf({
    async resolve(hostname) {
      asked.push(hostname);
      await new Promise<void>((resolve) => answers.push(resolve));
      return [{ address: '127.0.0.1', family: 4 }];
    },
  });
  const names = ['a', 'b', 'c', 'd', 'e'].map((name) => `${name}.test`);
  const sent = [...names, 'a.test'].map((name) => send(sender, `http://${name}:${receiver.port}`));
  await until(() => asked.length === 4);
  answers.shift()?.();
  await until(() => asked.length === 5);
  for (const answer of answers) answer();
  expect((await Promise.all(sent)).map((response) => 'status' in response && response.status)).toEqual(
    Array.from({ length: 6 }, () => 204),
  );
  expect(asked).toEqual(names);
});

test('production sends over https only, and URLs with credentials or fragments are refused', () => {
  const sender = senderOf({ production: true, allowed: [] });
  expect(sender.problemOf('http://example.com/')).toBe('not-https');
  expect(sender.problemOf('https://user:password@example.com/')).toBe('credentials');
  expect(sender.problemOf('https://example.com/#a')).toBe('malformed');
  expect(sender.problemOf('ftp://example.com/')).toBe('malformed');
  expect(sender.problemOf('file:///etc/passwd')).toBe('malformed');
  expect(sender.problemOf('https://10.0.0.1/')).toBe('forbidden-address');
  expect(sender.problemOf('https://0xA9FEA9FE/latest/meta-data')).toBe('forbidden-address');
  expect(sender.problemOf('https://example.com/hook')).toBeUndefined();
  expect(senderOf().problemOf('http://example.com/')).toBeUndefined();
});

test('a closed sender ends its requests', async () => {
  const receiver = await receiving({ answer: () => undefined });
  const sender = senderOf();
  const sending = send(sender, receiver.url);
  // The request is under way once there is a connection.
  await new Promise<void>((resolve) => {
    const socket = connect(receiver.port, '127.0.0.1', () => resolve(void socket.destroy()));
  });
  sender.close();
  expect(await sending).toEqual({ error: 'connection' });
});

test('a certificate must be of the name, and of a trusted authority', async () => {
  const trusted = getCACertificates('default');
  stops.push(() => setDefaultCACertificates(trusted));
  const authority = await createAuthority();
  const { cert, key } = await authority.issue('hooks.test');
  const receiver = await receiving({ tls: { cert: readFileSync(cert), key: readFileSync(key) } });
  const sender = senderOf({ resolve: async () => [{ address: '127.0.0.1', family: 4 }] });
  expect(await send(sender, `https://hooks.test:${receiver.port}`)).toEqual({ error: 'certificate' });
  setDefaultCACertificates([...trusted, readFileSync(authority.ca, 'utf8')]);
  expect(await send(sender, `https://hooks.test:${receiver.port}`)).toMatchObject({ status: 204 });
  expect(await send(sender, `https://other.test:${receiver.port}`)).toEqual({ error: 'certificate' });
  expect(receiver.received).toHaveLength(1);
});
