import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import Koa from 'koa';
import { expect, test } from 'vitest';
import { createHttpServer } from '../../../server/http/server.ts';
import { freePort } from '../../rig/servers/port.ts';
import { until } from '../../rig/until.ts';

const count = { begun: 0, live: 0, most: 0 };

const app = new Koa().use(async (ctx) => {
  count.begun++;
  count.most = Math.max(count.most, ++count.live);
  await pause(1);
  count.live--;
  ctx.body = ctx.path === '/large' ? Buffer.alloc(10_000_000) : ctx.path;
});

app.silent = true;

test('requests of one connection are handled one by one, in order', async () => {
  const port = await freePort();
  await createHttpServer(app, {}, console).listen(port, '127.0.0.1');
  const socket = connect(port, '127.0.0.1');
  let answers = '';
  socket.on('data', (data) => {
    answers += data.toString();
  });
  const paths = Array.from({ length: 500 }, (_, i) => `/${i};`);
  const ask = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
  socket.write(paths.map(ask).join(''));
  await until(() => answers.endsWith('/499;'));
  expect(answers.match(/\/\d+;/g)).toEqual(paths);
  expect(count).toEqual({ begun: 500, live: 0, most: 1 });

  // A client that reads nothing gets one request handled.
  const deaf = connect(port, '127.0.0.1').pause();
  deaf.write(ask('/large').repeat(1000));
  await pause(500);
  expect(count.begun).toBe(501);
  deaf.destroy();
  await until(() => fetch(`http://127.0.0.1:${port}/`));
  expect(count).toEqual({ begun: 502, live: 0, most: 1 });
  socket.destroy();
});
