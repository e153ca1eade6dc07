import { hash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import Koa from 'koa';
import { beforeAll, expect, test } from 'vitest';
import { readForm } from '../../../server/http/api/multipart.ts';
import { answerFailures } from '../../../server/http/failures.ts';
import { createHttpServer } from '../../../server/http/server.ts';
import { freePort } from '../../rig/servers/port.ts';
import { until } from '../../rig/until.ts';

const MEGABYTE = 1024 * 1024;
const log = Object.fromEntries(['debug', 'info', 'warn', 'error', 'fatal'].map((level) => [level, () => undefined]));

const app = new Koa().use(answerFailures(log as never)).use(async (ctx) => {
  ctx.state['userId'] = ctx.get('X-User');
  const file = (await readForm(ctx)).get('file') as File;
  const pieces: Uint8Array[] = await Array.fromAsync(file.stream());
  ctx.set('X-Pieces', String(pieces.length));
  ctx.body = hash('sha256', Buffer.concat(pieces));
});
app.silent = true;

let port = 0;
beforeAll(async () => {
  port = await freePort();
  await createHttpServer(app, {}, console).listen(port, '127.0.0.1');
});

const start = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n';
const end = '\r\n--b--\r\n';

function open(user: string, length: string): Socket & { answer(): string } {
  const socket = connect(port, '127.0.0.1');
  socket.write(
    `POST / HTTP/1.1\r\nHost: x\r\nX-User: ${user}\r\nContent-Type: multipart/form-data; boundary=b\r\n${length}\r\n\r\n`,
  );
  let answer = '';
  socket.on('data', (data) => {
    answer += data.toString();
  });
  socket.on('error', () => undefined);
  return Object.assign(socket, { answer: () => answer });
}

const send = async (user: string, size: number): Promise<string> => {
  const socket = open(user, `Content-Length: ${start.length + size + end.length}`);
  socket.write(start);
  socket.write(Buffer.alloc(size));
  socket.write(end);
  const answer = await until(async () => socket.answer());
  socket.destroy();
  return answer;
};

test('a form sent byte by byte is refused before it costs time and memory', async () => {
  const before = { memory: process.memoryUsage.rss(), cpu: process.cpuUsage() };
  const socket = open('a', 'Transfer-Encoding: chunked');
  socket.write(`${start.length.toString(16)}\r\n${start}\r\n`);
  const pieces = '1\r\nx\r\n'.repeat(10_000);
  for (let sent = 0; sent < 2 * MEGABYTE && socket.answer() === ''; sent += 10_000) {
    if (!socket.write(pieces))
      await Promise.race([new Promise((drained) => socket.once('drain', drained)), until(async () => socket.answer())]);
  }
  expect(await until(async () => socket.answer())).toMatch(/^HTTP\/1\.1 400 .*too_many_pieces/s);
  socket.destroy();
  expect(process.memoryUsage.rss() - before.memory).toBeLessThan(100 * MEGABYTE);
  expect(process.cpuUsage(before.cpu).user / 1e6).toBeLessThan(3);
});

test('a file sent in small pieces is read in a few, unchanged', async () => {
  const content = Buffer.from(Array.from({ length: 100_000 }, (_, n) => n % 251));
  const socket = open('a', 'Transfer-Encoding: chunked');
  const piece = (bytes: string | Buffer) => {
    socket.write(`${bytes.length.toString(16)}\r\n`);
    socket.write(bytes);
    socket.write('\r\n');
  };
  piece(start);
  for (let at = 0; at < content.length; at += 100) piece(content.subarray(at, at + 100));
  piece(end);
  piece('');
  const answer = await until(async () => socket.answer());
  expect(answer).toContain(hash('sha256', content));
  expect(Number(/X-Pieces: (\d+)/.exec(answer)?.[1])).toBeLessThanOrEqual(100_000 / 16_384 + 1);
  socket.destroy();
});

test('a user who fills the places for forms does not lock others out', async () => {
  const sockets = Array.from({ length: 40 }, () => {
    const socket = open('slow', `Content-Length: ${5 * MEGABYTE}`);
    socket.write(start);
    socket.write(Buffer.alloc(5 * MEGABYTE - 1000));
    return socket;
  });
  await until(async () => sockets.filter((socket) => socket.answer().startsWith('HTTP/1.1 503')).length >= 10, {
    within: 20_000,
  });
  expect(await send('other', 4 * MEGABYTE)).toMatch(/^HTTP\/1\.1 200/);
  for (const socket of sockets) socket.destroy();
});
