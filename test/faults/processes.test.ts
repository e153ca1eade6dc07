import { existsSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callerOf } from '../contract/callers.ts';
import { PASSWORD } from '../contract/scenario.ts';
import { clientAddress, freshEmail } from '../rig/address.ts';
import { type Metrics, metricsOnFreePort } from '../rig/metrics.ts';
import { accepts, freePort } from '../rig/port.ts';
import { childrenOf } from '../rig/process-tree.ts';
import { type Service, startService } from '../rig/service.ts';
import { inTime, until } from '../rig/until.ts';
import { startUploading, type Uploading } from '../uploads/storage.ts';

const PROCESSES = 3;
const READ = 'GET /api/users?limit=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

let uploading: Uploading;
let service: Service;
let metrics: Metrics;
beforeAll(async () => {
  metrics = await metricsOnFreePort();
  uploading = await startUploading('S3', { WEB_CONCURRENCY: String(PROCESSES), METRICS_PORT: String(metrics.port) });
  const [first] = uploading.stack.services;
  if (!first) throw new Error('no service');
  service = first;
  await until(() => banners() > 0, { what: 'the banner' });
}, 60_000);
afterAll(() => uploading?.stop());

const workers = () => childrenOf(service.pid ?? 0);
const banners = () => service.output().match(/Account service/g)?.length ?? 0;

/** A new start, ready in all its processes. */
async function restart(): Promise<void> {
  const before = banners();
  await service.restart();
  await until(() => banners() > before, { what: 'the banner' });
}

/** A request by a connection of its own, once it is on its way; `answer` is all that comes back. */
async function send(): Promise<{ answer: Promise<string> }> {
  const closed = Promise.withResolvers<void>();
  let answer = '';
  const socket = connect(service.port, '127.0.0.1');
  socket.on('data', (data) => {
    answer += data.toString();
  });
  socket.on('error', () => undefined).once('close', () => closed.resolve());
  await new Promise((sent) => socket.once('connect', () => socket.write(READ, sent)).once('close', sent));
  return {
    answer: inTime(
      closed.promise.then(() => answer),
      { within: 15_000, what: 'an answer' },
    ),
  };
}

const read = async () => (await send()).answer;

/** Kills one of them, and waits until another has taken its place and all are ready. */
async function replaceOne(): Promise<void> {
  const [victim = 0] = workers();
  process.kill(victim, 'SIGKILL');
  await until(() => workers().length === PROCESSES && !workers().includes(victim), { within: 20_000 });
}

const isThere = (pid: number) => existsSync(`/proc/${pid}`);
const isWhole = (answer: string) => answer.startsWith('HTTP/1.1 200 ') && answer.endsWith('}');

test('they start as one service does: with one banner', async () => {
  const before = banners();
  await restart();
  expect(workers()).toHaveLength(PROCESSES);
  expect(banners()).toBe(before + 1);
});

test('of fifty logins at once five are looked at, whichever processes take them', async () => {
  const call = callerOf('rest', service.url);
  const address = clientAddress();
  const attempts = await Promise.all(
    Array.from({ length: 50 }, () => call('auth.login', { email: freshEmail(), password: PASSWORD }, { address })),
  );
  const answered = (status: number) => attempts.filter((attempt) => attempt.status === status).length;
  const [lookedAt, refused, unavailable] = [answered(401), answered(429), answered(503)];
  // A machine that stops for half a second makes Redis commands time out, counted or not.
  expect(lookedAt).toBeLessThanOrEqual(5);
  expect(lookedAt + unavailable).toBeGreaterThanOrEqual(5);
  expect(lookedAt + refused + unavailable).toBe(50);
});

test('their metrics are served as those of one service, also when one of them has ended', async () => {
  const answered = () =>
    metrics.value('http_server_request_duration_seconds_count', {
      method: 'GET',
      route: '/api/users',
      status: '200',
    });
  const before = (await answered()) ?? 0;
  await Promise.all(Array.from({ length: 30 }, read));
  expect(await answered()).toBe(before + 30);

  // A counter that fell would be taken for a restart, and all that the others have counted for new.
  await replaceOne();
  await Promise.all(Array.from({ length: 30 }, read));
  expect(await answered()).toBe(before + 60);
});

test('one that is killed is replaced; the others answer all that comes meanwhile', async () => {
  const requests: { start: number; answer: string }[] = [];
  let isOver = false;
  const load = Promise.all(
    Array.from({ length: 8 }, async () => {
      while (!isOver) {
        const start = performance.now();
        requests.push({ start, answer: await read() });
      }
    }),
  );
  await until(() => requests.length > 50);
  const [victim = 0, ...others] = workers();
  const killed = performance.now();
  process.kill(victim, 'SIGKILL');
  await until(() => workers().length === PROCESSES && !workers().includes(victim), { within: 20_000 });
  const replaced = performance.now();
  const before = requests.length;
  await until(() => requests.length > before + 50);
  isOver = true;
  await load;
  expect(workers()).toEqual(expect.arrayContaining(others));
  expect(service.output()).toContain('a process has ended and is replaced');
  const lost = requests.filter(({ answer }) => !isWhole(answer));
  // What the killed one had taken.
  expect(lost.filter(({ start }) => start > killed + 100)).toEqual([]);
  expect(lost.length).toBeLessThanOrEqual(8);
  console.log(
    `${requests.length} requests, ${lost.length} lost with the process, replaced after ${Math.round(replaced - killed)} ms`,
  );
}, 60_000);

test('SIGTERM ends all of them and cuts no request off', async () => {
  const sent = await Promise.all(Array.from({ length: 100 }, send));
  service.signal('SIGTERM');
  const answers = await Promise.all(sent.map(({ answer }) => answer));
  expect(answers.filter((answer) => !isWhole(answer))).toEqual([]);
  expect(await inTime(service.exited, { within: 10_000, what: 'the end' })).toBe(0);
  expect(await accepts(service.port)).toBe(false);
  await restart();
});

test('the end of the one that started them is the end of all', async () => {
  const all = workers();
  process.kill(service.pid ?? 0, 'SIGKILL');
  await until(() => !all.some(isThere), { what: 'the end of all' });
  expect(await accepts(service.port)).toBe(false);
  await restart();
});

test('a port that is taken ends all, with one message', async () => {
  const taken = createServer();
  const port = await freePort();
  await new Promise<void>((listening) => taken.listen(port, '127.0.0.1', listening));
  const refused = startService({ env: { ...service.env, PORT: String(port), METRICS_PORT: '' } });
  const { message } = await refused.then(
    () => new Error('it started'),
    (error: Error) => error,
  );
  taken.close();
  expect(message).toContain('ended with exit code 1');
  expect(message.match(/Port \d+ is taken/g)).toHaveLength(1);
});

test('embedded parts that several processes cannot share are refused by name', async () => {
  const refused = startService({ env: { WEB_CONCURRENCY: '2' } });
  await expect(refused).rejects.toThrow(/WEB_CONCURRENCY needs DATABASE_URL.*WEB_CONCURRENCY needs S3_ENDPOINT/s);
});
