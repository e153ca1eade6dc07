import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createConnection } from 'mysql2/promise';
import { describe, expect, onTestFinished, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { mailsSettled, onBothStacks, onStack, registered } from '../contract/rig/scenario.ts';
import { photograph } from '../contract/uploads/corpus.ts';
import { onStorage, sendImage, uploader } from '../contract/uploads/storage.ts';
import { type Service, startService } from '../rig/process/service.ts';
import { freshEmail } from '../rig/servers/address.ts';
import type { SmtpSink } from '../rig/servers/smtp.ts';
import { inTime, until } from '../rig/until.ts';

/** Less than any kernel's backlog. */
const CLIENTS = 100;
/** The time that the service keeps listening, less a margin. */
const LINGER_MS = 800;
const ROUNDS = 2;

const READ = 'GET /api/users?limit=1 HTTP/1.1\r\nHost: x\r\n\r\n';

/** A connection, and everything received on it so far. */
async function open({ port }: Service): Promise<{ socket: Socket; answer: () => string; closed: Promise<void> }> {
  const socket = connect(port, '127.0.0.1');
  let answer = '';
  socket.on('data', (data) => {
    answer += data.toString();
  });
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  await once(socket, 'connect');
  // The answer shows any later error.
  socket.on('error', () => undefined);
  return { socket, answer: () => answer, closed };
}

const openMany = (service: Service) => Promise.all(Array.from({ length: CLIENTS }, () => open(service)));

/** Sends a request on each connection; resolves to everything received until it closed. */
const answersTo = (clients: Awaited<ReturnType<typeof open>>[], request = READ) =>
  clients.map(async ({ socket, answer, closed }) => {
    const before = answer().length;
    socket.write(request);
    await inTime(closed, { within: 15_000, what: 'the end of a connection' });
    return answer().slice(before);
  });

const isWhole = (answer: string) => {
  const length = Number(/^content-length: (\d+)/im.exec(answer)?.[1]);
  return answer.startsWith('HTTP/1.1 200 ') && answer.slice(answer.indexOf('\r\n\r\n') + 4).length === length;
};
const saysClose = (answer: string) => /^connection: close/im.test(answer);

const cutOff = (answers: string[]) => answers.filter((answer) => !isWhole(answer)).map((answer) => answer.slice(-40));

const exitCode = (service: Service) => inTime(service.exited, { within: 10_000, what: 'the end of the service' });

onBothStacks((stack) => {
  const started = async () => {
    const [service] = stack().services;
    if (!service) throw new Error('no service');
    await service.restart();
    return service;
  };

  test('SIGTERM cuts off no request sent just before it', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const service = await started();
      const answers = answersTo(await openMany(service));
      service.signal('SIGTERM');
      expect(cutOff(await Promise.all(answers))).toEqual([]);
      expect(await exitCode(service)).toBe(0);
    }
  });

  test('SIGTERM cuts off no request that only the kernel has accepted', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const service = await started();
      service.signal('SIGSTOP');
      const answers = answersTo(await openMany(service));
      service.signal('SIGTERM');
      service.signal('SIGCONT');
      expect(cutOff(await Promise.all(answers))).toEqual([]);
      expect(await exitCode(service)).toBe(0);
    }
  });

  test('readiness reports it immediately, and old and new connections are still served', async () => {
    const observed = async () => {
      const service = await started();
      const reused = await openMany(service);
      for (const { socket } of reused) socket.write(READ);
      await until(() =>
        reused.every(({ answer }) => answer().includes('\r\n\r\n') && answer().trimEnd().endsWith('}')),
      );
      const signalled = performance.now();
      service.signal('SIGTERM');
      const readiness = await until(async () => {
        const response = await fetch(`${service.url}/readyz`);
        return response.status === 503 ? response : undefined;
      });
      expect(await readiness.json()).toEqual({ status: 'stopping' });
      expect(readiness.headers.get('connection')).toBe('close');
      const pending = [...answersTo(reused), ...answersTo(await openMany(service))];
      const isInTime = performance.now() - signalled < LINGER_MS;
      const answers = await Promise.all(pending);
      expect(await exitCode(service)).toBe(0);
      return isInTime ? answers : undefined;
    };
    // If connecting takes longer than the service keeps listening, the test shows nothing.
    const answers = await until(observed, { within: 50_000, what: 'requests within a second of the signal' });
    expect(cutOff(answers)).toEqual([]);
    expect(answers.filter(saysClose)).toHaveLength(answers.length);
  });
});

onStack(
  'real',
  (stack) => {
    const started = async () => {
      const [service] = stack().services as [Service];
      await service.restart();
      return service;
    };

    // checks: F19
    test('readiness is answered while a request is in flight: a balancer takes silence for a crash', async () => {
      const service = await started();
      const { socket, answer, closed } = await open(service);
      const body = JSON.stringify({ email: freshEmail() });
      socket.write(
        `POST /auth/forgot-password HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n{`,
      );
      service.signal('SIGTERM');
      const signalled = performance.now();
      for (let ms = 0; ms < 3 * LINGER_MS; ms = performance.now() - signalled) {
        const { status } = await fetch(`${service.url}/readyz`);
        if (ms > LINGER_MS) expect(status).toBe(503);
      }
      socket.write(body.slice(1));
      await closed;
      expect(cutOff([answer()])).toEqual([]);
      expect(await exitCode(service)).toBe(0);
    });

    // checks: F2, F19
    test('a mail that was sent is noted, also if that takes some seconds', async () => {
      const service = await started();
      const call = callerOf('rest', service.url);
      const holder = await createConnection({ uri: String(service.env['DATABASE_URL']) });
      onTestFinished(() => holder.end());
      await holder.query('begin');
      const { email } = await registered({ stack: stack(), call });
      await mailsSettled(stack(), email);
      const smtp = stack().smtp as SmtpSink;
      smtp.behave('hold');
      await call('auth.forgotPassword', { email });
      await smtp.waitForAttempts({ outcome: 'held' });
      const outbox = "select state from outbox where kind = 'reset-password' and email = ?";
      await holder.query(`${outbox} for update`, [email]);
      service.signal('SIGTERM');
      const signalled = performance.now();
      smtp.behave('accept');
      await until(() => performance.now() - signalled > 4 * LINGER_MS);
      await holder.query('rollback');
      expect(await exitCode(service)).toBe(0);
      expect(await stack().database(outbox, [email])).toEqual([{ state: 'sent' }]);
    });
  },
  { inProcess: false },
);

onStorage('S3', (uploading) => {
  // checks: F19
  test('of 200 requests in flight, including two image uploads, SIGTERM cuts off none', async () => {
    const { stack } = uploading();
    const [service] = stack.services;
    if (!service) throw new Error('no service');
    const { session } = await uploader(uploading());
    const bytes = await photograph(2000, 1500);
    const reads = [await openMany(service), (await openMany(service)).slice(2)].flat();
    const uploads = [1, 2].map(() => sendImage(uploading(), session, { bytes, contentType: 'image/jpeg' }));
    const uploadRows = () => stack.database('select state from uploads');
    await until(async () => (await uploadRows()).length > 0, { what: 'the first upload' });
    const answers = answersTo(reads);
    const started = performance.now();
    service.signal('SIGTERM');
    expect(cutOff(await Promise.all(answers))).toEqual([]);
    expect((await Promise.all(uploads)).map(({ status }) => status)).toEqual([200, 200]);
    expect(await exitCode(service)).toBe(0);
    console.log(`F19: 200 requests in flight, 0 cut, ended after ${Math.round(performance.now() - started)} ms`);
  });
});

describe('a stopping process', () => {
  // checks: F19
  test('exits at the second signal immediately', async () => {
    // Without npm, which the next signal would hit after the service has exited.
    const service = await startService();
    const { socket } = await open(service);
    socket.write(
      'POST /auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{',
    );
    let code: number | null | undefined;
    void service.exited.then((exitCode) => {
      code = exitCode;
    });
    await until(
      () => {
        service.signal('SIGTERM');
        return code !== undefined;
      },
      { every: 100 },
    );
    expect(code).toBe(1);
  });

  test('exits cleanly while it waits for its database', async () => {
    const service = await startService({
      env: { DATABASE_URL: 'mysql://nobody@127.0.0.1:9/none' },
      ready: false,
      npm: true,
    });
    const answers = answersTo(await openMany(service), READ.replace('/api/users?limit=1', '/livez'));
    service.signal('SIGTERM');
    expect(cutOff(await Promise.all(answers))).toEqual([]);
    expect(await exitCode(service)).toBe(0);
  });
});
