import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { loggedIn } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { imageForm } from '../contract/uploads/storage.ts';
import { spawnGroup } from '../rig/process/process-group.ts';
import { root, startService } from '../rig/process/service.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { requireBinary } from '../rig/servers/debian.ts';
import { createDatabase, dropDatabase } from '../rig/servers/mysql.ts';
import { nextDatabase } from '../rig/servers/redis.ts';
import { startS3 } from '../rig/servers/s3.ts';
import { startSmtpSink } from '../rig/servers/smtp.ts';
import type { Stack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** What docs/deploy/accounts@.service requires of systemd and of the service. systemd itself does not run here. */

const unit = join(root, 'docs/deploy/accounts@.service');
const analyzer = await requireBinary({ names: ['systemd-analyze'], debianPackage: 'systemd' });
const analyze = (...args: string[]) => execFileSync(analyzer, ['--no-pager', ...args], { encoding: 'utf8' });
/** All values of a setting in the unit. */
const settings = (name: string): string[] =>
  [...readFileSync(unit, 'utf8').matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);

test('the unit confines the service: exposure 3.0 at most', () => {
  expect(analyze('security', '--offline=true', '--threshold=30', unit)).toContain('Overall exposure level');
});

test('the unit allows every system call of a login and an image, on real parts', async () => {
  const [allowed, refused] = [systemCallsOf('@system-service'), systemCallsOf('@privileged')];
  expect(settings('SystemCallFilter')).toEqual(['@system-service', '~@privileged']);
  const [smtp, s3, databaseUrl] = [
    await startSmtpSink(),
    await startS3({ cors: true }),
    await createDatabase(inject('mysqlUrl')),
  ];
  const counts = join(temporaryDirectory('strace'), 'counts');
  const strace = await requireBinary({ names: ['strace'], debianPackage: 'strace' });
  const service = await startService({
    wrapper: [strace, '-f', '-c', '-o', counts],
    env: {
      ...s3.env,
      APP_SECRET: randomBytes(32).toString('hex'),
      DATABASE_URL: databaseUrl,
      REDIS_URL: await nextDatabase(inject('redisUrl')),
      SMTP_URL: smtp.url,
      MAIL_FROM: 'no-reply@accounts.test',
    },
  });
  try {
    const stack = { waitForMail: smtp.waitFor } as unknown as Stack;
    const { session } = await loggedIn({ stack, call: callerOf('rest', service.url) });
    const headers = { cookie: `auth_session=${session}`, origin: service.appUrl };
    const body = imageForm({ bytes: await png(200, 100) });
    const reply = await fetch(`${service.url}/api/upload/image`, { method: 'POST', headers, body });
    expect(await reply.json()).toMatchObject({ success: true });
  } finally {
    // The traced process ends first; then strace writes.
    process.kill(childOf(service.pid ?? 0), 'SIGTERM');
    await service.exited;
    await Promise.all([smtp.stop(), s3.stop(), dropDatabase(databaseUrl)]);
  }
  const used = readFileSync(counts, 'utf8').matchAll(/^ *[\d.]+ .* ([a-z_\d]+)$/gm);
  const names = [...used].map(([, name = '']) => name).filter((name) => name !== 'total');
  expect(names.length).toBeGreaterThan(40);
  expect(names.filter((name) => !allowed.has(name) || refused.has(name))).toEqual([]);
});

/** The system calls of one of systemd's sets, including nested sets. */
function systemCallsOf(set: string): Set<string> {
  const lines = analyze('syscall-filter', set)
    .split('\n')
    .slice(1)
    .map((line) => line.trim());
  const calls = lines.filter((line) => /^[a-z_@]/.test(line));
  return new Set(calls.flatMap((line) => (line.startsWith('@') ? [...systemCallsOf(line)] : [line])));
}

const childOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]);

const PERIOD_MS = 2000;

/** systemd's end of NOTIFY_SOCKET. */
async function startSupervisor() {
  const socket = join(temporaryDirectory('notify'), 'socket');
  const file = await requireBinary({ names: ['socat'], debianPackage: 'socat' });
  const env = { PATH: process.env['PATH'] ?? '' };
  // Each message ends with a line break.
  const group = spawnGroup({ file, args: ['-u', `UNIX-RECV:${socket}`, 'STDOUT'], env });
  let seen = 0;
  let lastAt = performance.now();
  const messages = () => group.output().match(/WATCHDOG=1/g)?.length ?? 0;
  return {
    env: { NOTIFY_SOCKET: socket, WATCHDOG_USEC: String(PERIOD_MS * 1000) },
    messages,
    /** Whether systemd would already have killed the service. */
    isOverdue() {
      if (messages() > seen) {
        seen = messages();
        lastAt = performance.now();
      }
      return performance.now() - lastAt > PERIOD_MS;
    },
    output: group.output,
    stop: () => group.signal('SIGKILL'),
  };
}

test('a service with a running event loop notifies systemd, a hung one does not', async () => {
  await requireBinary({ names: ['systemd-notify'], debianPackage: 'systemd' });
  const supervisor = await startSupervisor();
  const service = await startService({ env: supervisor.env });
  try {
    let wasOverdue = false;
    const hasSaid = (count: number) => () => {
      wasOverdue ||= supervisor.isOverdue();
      return supervisor.messages() >= count;
    };
    await until(hasSaid(5), { what: 'five signs of life' });
    expect(wasOverdue).toBe(false);
    service.signal('SIGSTOP');
    await until(supervisor.isOverdue, { what: 'the end of the signs of life' });
    service.signal('SIGCONT');
    const { messages } = supervisor;
    await until(hasSaid(messages() + 2), { what: 'further signs of life' });
  } finally {
    await service.stop();
    supervisor.stop();
  }
});

test('with the watchdog of another process, or without systemd, nothing is sent', async () => {
  const supervisor = await startSupervisor();
  const service = await startService({ env: { ...supervisor.env, WATCHDOG_PID: '1' } });
  await service.stop();
  expect([supervisor.messages(), service.output()]).toEqual([0, expect.not.stringContaining('sign of life')]);
  supervisor.stop();
});
