import { existsSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { PASSWORD } from '../contract/rig/scenario.ts';
import { startUploading, type Uploading } from '../contract/uploads/storage.ts';
import { type Metrics, metricsOnFreePort } from '../rig/observe/metrics.ts';
import { childrenOf } from '../rig/process/process-tree.ts';
import { type Service, startService } from '../rig/process/service.ts';
import { clientAddress, freshEmail } from '../rig/servers/address.ts';
import { accepts, freePort } from '../rig/servers/port.ts';
import { inTime, until } from '../rig/until.ts';

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
});
afterAll(() => uploading?.stop());

const workers = () => childrenOf(service.pid ?? 0);
const banners = () => service.output().match(/Account service/g)?.length ?? 0;

/** A new start, with all its processes ready. */
async function restart(): Promise<void> {
  const before = banners();
  await service.restart();
  await until(() => banners() > before, { what: 'the banner' });
}

/** A request on its own connection, once it is sent; `answer` is everything received. */
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

const isReplaced = (victim: number) => workers().length === PROCESSES && !workers().includes(victim);

/** Kills one of them, and waits until it is replaced and all are ready. */
async function replaceOne(): Promise<void> {
  const [victim = 0] = workers();
  process.kill(victim, 'SIGKILL');
  await until(() => isReplaced(victim));
}

const isThere = (pid: number) => existsSync(`/proc/${pid}`);
const isWhole = (answer: string) => answer.startsWith('HTTP/1.1 200 ') && answer.trimEnd().endsWith('}');

test('several processes start as one service with one banner', async () => {
  const before = banners();
  await restart();
  expect(workers()).toHaveLength(PROCESSES);
  expect(banners()).toBe(before + 1);
});

test('of fifty concurrent logins five are checked, across processes', async () => {
  const call = callerOf('rest', service.url);
  const address = clientAddress();
  const attempts = await Promise.all(
    Array.from({ length: 50 }, () => call('auth.login', { email: freshEmail(), password: PASSWORD }, { address })),
  );
  const answered = (status: number) => attempts.filter((attempt) => attempt.status === status).length;
  const [lookedAt, refused, unavailable] = [answered(401), answered(429), answered(503)];
  // If the machine stalls for half a second, Redis commands time out, counted or not.
  expect(lookedAt).toBeLessThanOrEqual(5);
  expect(lookedAt + unavailable).toBeGreaterThanOrEqual(5);
  expect(lookedAt + refused + unavailable).toBe(50);
});

test('metrics cover all processes, including ended ones', async () => {
  const answered = () =>
    metrics.value('http_server_request_duration_seconds_count', {
      method: 'GET',
      route: '/api/users',
      status: '200',
    });
  const before = (await answered()) ?? 0;
  await Promise.all(Array.from({ length: 30 }, read));
  expect(await answered()).toBe(before + 30);

  // A falling counter would look like a restart, and all later counts like new ones.
  await replaceOne();
  await Promise.all(Array.from({ length: 30 }, read));
  expect(await answered()).toBe(before + 60);
});

test('a killed process is replaced, and the others serve until then', async () => {
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
  await until(() => isReplaced(victim));
  const replaced = performance.now();
  const before = requests.length;
  await until(() => requests.length > before + 50);
  isOver = true;
  await load;
  expect(workers()).toEqual(expect.arrayContaining(others));
  expect(service.output()).toContain('a process has ended and is replaced');
  const lost = requests.filter(({ answer }) => !isWhole(answer));
  // The requests that the killed process had accepted.
  expect(lost.filter(({ start }) => start > killed + 100)).toEqual([]);
  expect(lost.length).toBeLessThanOrEqual(8);
  console.log(
    `${requests.length} requests, ${lost.length} lost with the process, replaced after ${Math.round(replaced - killed)} ms`,
  );
});

/** The answers to reads, one after the other, until the condition holds. */
async function readUntil(condition: () => boolean): Promise<string[]> {
  const answers: string[] = [];
  await until(async () => {
    answers.push(await read());
    return condition();
  });
  return answers;
}

test('a hung process is killed and replaced, and the others serve until then', async () => {
  const [victim = 0, ...others] = workers();
  process.kill(victim, 'SIGSTOP');
  const answers = await readUntil(() => isReplaced(victim));
  expect(answers.filter((answer) => !isWhole(answer))).toEqual([]);
  expect(workers()).toEqual(expect.arrayContaining(others));
  expect(service.output()).toContain('a process hangs and is killed');
});

test('after the first process was frozen for longer than a hung one is left, no other is replaced', async () => {
  const all = workers();
  const frozenAt = performance.now();
  service.signal('SIGSTOP');
  const answers = await readUntil(() => performance.now() - frozenAt > 12_000);
  service.signal('SIGCONT');
  // Its overdue checks come first.
  await metrics.scrape();
  expect(answers.filter((answer) => !isWhole(answer))).toEqual([]);
  expect(workers()).toEqual(all);
});

test('SIGTERM ends all processes and cuts no request off', async () => {
  const sent = await Promise.all(Array.from({ length: 100 }, send));
  service.signal('SIGTERM');
  const answers = await Promise.all(sent.map(({ answer }) => answer));
  expect(answers.filter((answer) => !isWhole(answer))).toEqual([]);
  expect(await inTime(service.exited, { within: 10_000, what: 'the end' })).toBe(0);
  expect(await accepts(service.port)).toBe(false);
  await restart();
});

test('all processes end with their parent', async () => {
  const all = workers();
  process.kill(service.pid ?? 0, 'SIGKILL');
  await until(() => !all.some(isThere), { what: 'the end of all' });
  expect(await accepts(service.port)).toBe(false);
  await restart();
});

test('a taken port ends all processes with one message', async () => {
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

test('embedded parts that processes cannot share are refused by name', async () => {
  const refused = startService({ env: { WEB_CONCURRENCY: '2' } });
  await expect(refused).rejects.toThrow(/WEB_CONCURRENCY requires DATABASE_URL.*WEB_CONCURRENCY requires S3_ENDPOINT/s);
});
