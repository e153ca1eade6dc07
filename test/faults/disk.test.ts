import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { isAlive, loggedIn, PASSWORD, sessionIn } from '../contract/rig/scenario.ts';
import { spawnGroup, whenGone } from '../rig/process/process-group.ts';
import { type Service, startService } from '../rig/process/service.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { startMysql } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { startRedis } from '../rig/servers/redis.ts';
import { noS3 } from '../rig/servers/s3.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** A full disk is a tmpfs, which only root on Linux can mount. Skipped elsewhere and in most containers. */
const mayMount = canMount();

interface Disk {
  directory: string;
  fill(): void;
  empty(): void;
  unmount(): void;
}

function canMount(): boolean {
  try {
    mountDisk(1).unmount();
    return true;
  } catch {
    return false;
  }
}

const isFull = (error: unknown) => error instanceof Error && 'code' in error && error.code === 'ENOSPC';

function mountDisk(megabytes: number): Disk {
  const mount = temporaryDirectory('disk');
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', mount]);
  const directory = join(mount, 'data');
  mkdirSync(directory);
  const ballast = join(mount, 'ballast');
  return {
    directory,
    fill() {
      const { bavail, bsize } = statfsSync(mount);
      try {
        writeFileSync(ballast, Buffer.alloc(bavail * bsize));
      } catch (error) {
        // The server wrote in the meantime, and the disk is still full.
        if (!isFull(error)) throw error;
      }
    },
    empty: () => rmSync(ballast, { force: true }),
    unmount: () => execFileSync('umount', ['-l', mount]),
  };
}

/** Each with a change: the status of its answer, and what it acknowledged. */
const disks = {
  'the embedded files': { megabytes: 24, change: 'registration' },
  // It starts with 190 MB, mostly its log.
  'the database server': { megabytes: 320, change: 'registration' },
  Redis: { megabytes: 24, change: 'login' },
} as const;

describe.skipIf(!mayMount).each(Object.keys(disks) as (keyof typeof disks)[])('the disk of %s', (whose) => {
  let disk: Disk;
  let server: PrivateServer | undefined;
  let stack: Stack;
  beforeAll(async () => {
    disk = mountDisk(disks[whose].megabytes);
    const { directory } = disk;
    const limits = { LIMIT_REGISTER: '100000/900' };
    if (whose === 'the embedded files') {
      stack = await startStack('embedded', { env: { ...limits, DATA_DIR: directory } });
    } else if (whose === 'Redis') {
      server = await startRedis({ directory });
      stack = await startStack('real', { env: limits, redisUrl: server.url });
    } else {
      server = await startMysql({ directory });
      stack = await startStack('real', { env: limits, mysqlUrl: server.url });
    }
  });
  afterAll(async () => {
    disk.empty();
    await stack?.stop();
    await server?.stop();
    disk.unmount();
  });

  // checks: F12
  test('is full: changes get 503 and reads work; with free space changes work again, and nothing is lost', async () => {
    const call = callerOf('rest', stack.url);
    const { session, ...person } = await loggedIn({ stack, call });
    const acknowledged: string[] = [];
    const changes = {
      async registration() {
        const email = freshEmail();
        const { status } = await call('auth.register', { name: 'Ada Lovelace', email, password: PASSWORD });
        if (status === 201) acknowledged.push(email);
        return status;
      },
      async login() {
        const reply = await call('auth.login', person);
        if (reply.status === 200) acknowledged.push(sessionIn(reply) ?? '');
        return reply.status;
      },
    };
    const isStored = {
      registration: async (email: string) =>
        (await stack.database('select id from users where email = ?', [email])).length === 1,
      login: (token: string) => isAlive(call, token),
    }[disks[whose].change];
    const change = changes[disks[whose].change];
    const succeeded = { registration: 201, login: 200 }[disks[whose].change];

    disk.fill();
    // Each server has some space left.
    const statuses = new Set<number>();
    const refused = async () => {
      const status = await change();
      statuses.add(status);
      return status !== succeeded;
    };
    await until(refused, { within: 60_000, what: 'the first refusal' });
    for (let i = 0; i < 20; i++) await refused();
    statuses.delete(succeeded);
    expect(statuses).toEqual(new Set([503]));
    expect(await isAlive(call, session)).toBe(true);
    disk.empty();
    const freed = performance.now();
    await until(async () => (await change()) === succeeded, { what: 'a change after there is room again' });
    const ms = Math.round(performance.now() - freed);
    console.log(`F12: ${whose}: the next ${disks[whose].change} succeeded ${ms} ms after there was room`);
    expect(await isAlive(call, session)).toBe(true);
    for (const one of acknowledged) expect([one, await isStored(one)]).toEqual([one, true]);
  });
});

// checks: F12
test.skipIf(process.platform !== 'linux').each(['production', 'development'])(
  'a full disk under the log costs no request, in %s',
  async (NODE_ENV) => {
    const stack = await startStack('real');
    let service: Service | undefined;
    try {
      const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
      const production = { APP_URL: 'https://accounts.test', PASSWORD_ITERATIONS: '100000', ...noS3 };
      service = await startService({
        env: { ...env, NODE_ENV, LOG_LEVEL: 'debug', ...(NODE_ENV === 'production' && production) },
        // Every write to it fails as on a full disk.
        stdout: '/dev/full',
      });
      const reply = await callerOf('rest', service.url)('auth.register', {
        name: 'Ada',
        email: freshEmail(),
        password: PASSWORD,
      });
      expect(reply.status).toBe(201);
      expect(await service.stop()).toBe(0);
    } finally {
      await service?.kill();
      await stack.stop();
    }
  },
);

// checks: F12
test.skipIf(process.platform !== 'linux')('the service exits even if its last log line finds no space', async () => {
  const log = join(import.meta.dirname, '../../server/telemetry/log.ts');
  const script = `import { createLog } from '${log}';
    const log = await createLog({ production: true, logLevel: 'info' });
    log.info('a line that is still in memory');
    process.exit(3);`;
  const [file, ...args] = [process.execPath, '--input-type=module', '--eval', script];
  const group = spawnGroup({ file, args, env: {}, stdout: '/dev/full' });
  await whenGone(group, { what: 'the end of a process without room for its log', within: 30_000 });
  expect(await group.exited).toBe(3);
});
