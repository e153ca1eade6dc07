import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { withinDeadline } from '../../../server/parts/deadline.ts';

const block = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** A connection to a server that sends back what it receives. */
async function echo() {
  const server = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  return socket;
}

test.each([
  ['before the request is sent', 'first'],
  ['after the request was sent', 'last'],
])('a reply is read though the event loop was blocked for longer than the deadline, %s', async (_when, order) => {
  const socket = await echo();
  const reply = withinDeadline({ ms: 100, what: 'the server' }, async () => {
    if (order === 'first') setImmediate(() => socket.write('a'));
    else socket.write('a');
    return String(await once(socket, 'data'));
  });
  block(300);
  expect(await reply).toBe('a');
});

test('without a reply the work ends at the deadline and its signal aborts', async () => {
  const { promise: aborted, resolve } = Promise.withResolvers<unknown>();
  const began = performance.now();
  const work = withinDeadline({ ms: 100, what: 'the server' }, (signal) => {
    signal.addEventListener('abort', () => resolve(signal.reason));
    return new Promise(() => undefined);
  });
  await expect(work).rejects.toMatchObject({
    code: 'SERVICE_UNAVAILABLE',
    cause: { message: 'the server did not answer within 100 ms' },
  });
  expect(performance.now() - began).toBeGreaterThan(90);
  expect(await aborted).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
});
