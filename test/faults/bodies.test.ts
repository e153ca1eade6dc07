import { randomInt } from 'node:crypto';
import { connect } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import Koa from 'koa';
import { beforeAll, expect, test } from 'vitest';
import { ServiceError } from '../../server/errors.ts';
import { readForm } from '../../server/http/api/multipart.ts';
import { createHttpServer } from '../../server/http/server.ts';
import { freePort } from '../rig/servers/port.ts';
import { until } from '../rig/until.ts';

const CLIENTS = 5000;
const AT_ONCE = 100;

const body = Buffer.concat([
  Buffer.from(
    '--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n',
  ),
  Buffer.alloc(2000, 7),
  Buffer.from('\r\n--b\r\nContent-Disposition: form-data; name="type"\r\n\r\npost\r\n--b--\r\n'),
]);
const head = `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: ${body.length}\r\n\r\n`;

/** The requests started, the pending ones, and those that ended neither with a form nor with a refusal. */
const count = { begun: 0, live: 0, failed: 0 };

const app = new Koa().use(async (ctx) => {
  count.begun++;
  count.live++;
  try {
    // As long as a session lookup takes: many clients have disconnected by then.
    for (let turns = randomInt(4); turns > 0; turns--) await nextTurn();
    await readForm(ctx);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'VALIDATION_FAILED') count.failed++;
  } finally {
    count.live--;
  }
  ctx.body = '';
});
app.silent = true;

let port = 0;
beforeAll(async () => {
  port = await freePort();
  await createHttpServer(app, {}, console).listen(port, '127.0.0.1');
});

/** Sends the first `length` bytes of the body and disconnects. */
const sendAndLeave = (length: number) =>
  new Promise<void>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    socket.write(head);
    socket.write(body.subarray(0, length), () => socket.destroy());
    socket.once('error', reject).once('close', () => resolve());
  });

test('the service does not wait for a form after its sender disconnects, at any byte', async () => {
  for (let sent = 0; sent < CLIENTS; sent += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, () => sendAndLeave(randomInt(body.length + 1))));
  }
  await until(() => count.begun === CLIENTS && count.live === 0, {
    what: 'the end of all requests',
    within: 20_000,
  }).catch(() => undefined);
  expect(count).toEqual({ begun: CLIENTS, live: 0, failed: 0 });
});
