import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { loggedIn, stackNames } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { put, sendImage } from '../contract/uploads/storage.ts';
import { spawnGroup } from '../rig/process/process-group.ts';
import { childrenOf } from '../rig/process/process-tree.ts';
import { root, startService } from '../rig/process/service.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { requireBinary } from '../rig/servers/debian.ts';
import { startS3 } from '../rig/servers/s3.ts';
import { startStack } from '../rig/stack.ts';
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

/** What systemd makes for the unit, elsewhere: the directories that stay writable, and the variables that name them. */
function unitDirectories() {
  const [caches, states, tmp] = [temporaryDirectory('caches'), temporaryDirectory('states'), temporaryDirectory('tmp')];
  const writable = [
    ...settings('CacheDirectory').map((name) => join(caches, name)),
    ...settings('StateDirectory').map((name) => join(states, name)),
    ...(settings('PrivateTmp').includes('yes') ? [tmp] : []),
  ];
  for (const directory of writable) mkdirSync(directory, { recursive: true });
  const variables = settings('Environment')
    .flatMap((line) => line.split(' '))
    .filter((variable) => /%[CS]/.test(variable))
    .map((variable) => variable.replace('%C', caches).replace('%S', states).split('='));
  return { writable, env: { ...Object.fromEntries(variables), TMPDIR: tmp } as Record<string, string> };
}

/** A call in the output of `strace -y` that has changed the file system or opened a file for writing, with its arguments. */
const CHANGE =
  /^(?:open(?=.*O_(?:WRONLY|RDWR|CREAT|TRUNC))|creat|truncate|mk|rename|link|symlink|unlink|rmdir|f?chmod|f?chown)\w*\((.*)\) += \d/;

/** A relative path is below the directory before it, or else below the working directory. */
const pathsIn = (args: string): string[] =>
  [...args.matchAll(/(?:<([^>]*)>, )?"([^"]*)"/g)].map(([, directory = root, path = '']) => resolve(directory, path));

const isBelow = (directory: string) => (path: string) => `${path}/`.startsWith(`${directory}/`);

describe.each(stackNames)('a login, an image and a file on %s parts', (name) => {
  const { writable, env } = unitDirectories();
  let lines: string[];
  beforeAll(async () => {
    const traces = temporaryDirectory('strace');
    const strace = await requireBinary({ names: ['strace'], debianPackage: 'strace' });
    const supervisor = await startSupervisor();
    const watchdog = { ...supervisor.env, WATCHDOG_USEC: `${settings('WatchdogSec')}000000` };
    const s3 = name === 'real' ? await startS3({ cors: true }) : undefined;
    const stack = await startStack(name, {
      // A file for each thread: no line is interrupted by that of another.
      wrapper: [strace, '-ff', '-y', '-o', join(traces, 'thread')],
      env: { ...env, ...watchdog, ...(s3?.env ?? { UPLOADS: 'disk' }) },
    });
    try {
      const call = callerOf('rest', stack.url);
      const { session } = await loggedIn({ stack, call });
      expect((await sendImage({ stack }, session, { bytes: await png(200, 100) })).status).toBe(200);
      const file = { filename: 'x.pdf', contentType: 'application/pdf', size: 4 };
      const { presignedUrl } = (await call('upload.presign', file, { session })).data;
      expect((await put(presignedUrl, Buffer.from('%PDF'), { 'content-type': file.contentType })).status).toBe(200);
      await until(() => supervisor.messages() > 0, { what: 'a sign of life' });
    } finally {
      // strace blocks the signals that it gets, and ends with the service.
      const [service] = stack.services;
      for (const traced of childrenOf(service?.pid ?? 0)) process.kill(traced, 'SIGTERM');
      await service?.exited;
      await stack.stop();
      await s3?.stop();
      supervisor.stop();
    }
    lines = readdirSync(traces).flatMap((file) => readFileSync(join(traces, file), 'utf8').split('\n'));
  });

  test('need no system call that the unit refuses', () => {
    const [allowed, refused] = [systemCallsOf('@system-service'), systemCallsOf('@privileged')];
    expect(settings('SystemCallFilter')).toEqual(['@system-service', '~@privileged']);
    // SQLite gives its journals to the owner of the database, but only as root: the unit has a user.
    const asUser = lines.filter((line) => !/^fchown\(\d+<.*\.sqlite-/.test(line));
    const names = new Set(asUser.flatMap((line) => line.match(/^\w+(?=\()/) ?? []));
    expect(names.size).toBeGreaterThan(40);
    expect([...names].filter((name) => !allowed.has(name) || refused.has(name))).toEqual([]);
  });

  test('write only where the unit allows it', () => {
    expect(settings('ProtectSystem')).toEqual(['strict']);
    const changed = lines.flatMap((line) => pathsIn(CHANGE.exec(line)?.[1] ?? ''));
    const outside = changed.filter((path) => !writable.some((directory) => isBelow(directory)(path)));
    expect(new Set(outside)).toEqual(new Set(['/dev/null']));
    const used = [env['NODE_COMPILE_CACHE'], ...(name === 'embedded' ? [env['DATA_DIR']] : [])];
    expect(writable.filter((directory) => changed.some(isBelow(directory)))).toEqual(used);
  });
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
