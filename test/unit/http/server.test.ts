import { get } from 'node:http';
import { connect, type Server } from 'node:net';
import Koa from 'koa';
import { expect, test, vi } from 'vitest';
import { createHttpServer } from '../../../server/http/server.ts';
import { freePort } from '../../rig/servers/port.ts';
import { until } from '../../rig/until.ts';

/** A server, and Node's server behind it. */
async function listening() {
  const app = new Koa();
  let node: Server | undefined;
  app.use((ctx) => {
    node = (ctx.req.socket as unknown as { server: Server }).server;
    ctx.body = '';
  });
  const log = { error: vi.fn() };
  const server = createHttpServer(app, {}, log);
  const port = await freePort();
  await server.listen(port, '127.0.0.1');
  await new Promise((resolve) => get({ port, host: '127.0.0.1', agent: false }, resolve));
  return { server, port, log, node: node as Server };
}

test('a connection that cannot be accepted is logged', async () => {
  const { server, log, node } = await listening();
  const err = Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' });
  node.emit('error', err);
  expect(log.error).toHaveBeenCalledExactlyOnceWith({ err }, 'connections cannot be accepted');
  await server.drain({ lingerMs: 0, withinMs: 1000 });
});

test('a port that is taken rejects the start', async () => {
  const { server, port, log } = await listening();
  const other = createHttpServer(new Koa(), {}, log);
  await expect(other.listen(port, '127.0.0.1')).rejects.toMatchObject({ code: 'EADDRINUSE' });
  await server.drain({ lingerMs: 0, withinMs: 1000 });
});

test('a client that stops reading its response is disconnected, one that reads gets all', async () => {
  const app = new Koa();
  const size = 50_000_000;
  const ends: boolean[] = [];
  app.use((ctx) => {
    ctx.body = Buffer.alloc(size);
    ctx.res.once('close', () => ends.push(ctx.res.writableFinished));
  });
  const server = createHttpServer(app, {}, { error: vi.fn() }, 200);
  const port = await freePort();
  await server.listen(port, '127.0.0.1');
  const client = connect({ port, host: '127.0.0.1' });
  client.on('error', () => undefined);
  client.pause().write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
  await until(() => ends.length > 0);
  expect(ends).toEqual([false]);
  client.destroy();
  const reply = await fetch(`http://127.0.0.1:${port}/`);
  expect((await reply.arrayBuffer()).byteLength).toBe(size);
  await server.drain({ lingerMs: 0, withinMs: 1000 });
});
