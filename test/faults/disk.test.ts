import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callerOf } from '../contract/callers.ts';
import { isAlive, loggedIn, PASSWORD } from '../contract/scenario.ts';
import { freshEmail } from '../rig/address.ts';
import { temporaryDirectory } from '../rig/custodian.ts';
import { startMysql } from '../rig/mysql.ts';
import type { PrivateServer } from '../rig/private-server.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** F12 needs a disk of its own: a tmpfs, which only root on Linux may mount. Elsewhere these tests count as skipped. */
const mayMount = process.platform === 'linux' && process.getuid?.() === 0;

interface Disk {
  directory: string;
  fill(): void;
  empty(): void;
  unmount(): void;
}

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
      writeFileSync(ballast, Buffer.alloc(bavail * bsize));
    },
    empty: () => rmSync(ballast, { force: true }),
    unmount: () => execFileSync('umount', ['-l', mount]),
  };
}

describe.skipIf(!mayMount).each(['the embedded files', 'the database server'] as const)(
  'F12: the disk of %s',
  (whose) => {
    let disk: Disk;
    let mysql: PrivateServer | undefined;
    let stack: Stack;
    beforeAll(async () => {
      const isEmbedded = whose === 'the embedded files';
      // MySQL begins with 190 MB, most of it its log.
      disk = mountDisk(isEmbedded ? 24 : 320);
      mysql = isEmbedded ? undefined : await startMysql({ directory: disk.directory });
      const env = { LIMIT_REGISTER: '100000/900', ...(isEmbedded && { DATA_DIR: disk.directory }) };
      stack = await startStack(mysql ? 'real' : 'embedded', { env, ...(mysql && { mysqlUrl: mysql.url }) });
    });
    afterAll(async () => {
      disk.empty();
      await stack?.stop();
      await mysql?.stop();
      disk.unmount();
    });

    test('is full: changes are 503, reads go on, and once there is room again so do changes, with nothing lost', async () => {
      const call = callerOf('rest', stack.url);
      const { session } = await loggedIn({ stack, call });
      const acknowledged: string[] = [];
      const register = async () => {
        const email = freshEmail();
        const { status } = await call('auth.register', { name: 'Ada Lovelace', email, password: PASSWORD });
        if (status === 201) acknowledged.push(email);
        return status;
      };
      disk.fill();
      // A database has some room of its own left.
      await until(async () => (await register()) !== 201, { within: 60_000, what: 'the first refusal' });
      const statuses = new Set<number>();
      for (let i = 0; i < 20; i++) statuses.add(await register());
      statuses.delete(201);
      expect(statuses).toEqual(new Set([503]));
      expect(await isAlive(call, session)).toBe(true);
      disk.empty();
      const freed = performance.now();
      await until(async () => (await register()) === 201, { what: 'a registration after there is room again' });
      console.log(
        `F12: ${whose}: the next registration succeeded ${Math.round(performance.now() - freed)} ms after there was room`,
      );
      expect(await isAlive(call, session)).toBe(true);
      const rows = await stack.database<{ email: string }>('select email from users');
      const stored = new Set(rows.map(({ email }) => email));
      expect(acknowledged.filter((email) => !stored.has(email))).toEqual([]);
    }, 120_000);
  },
);
