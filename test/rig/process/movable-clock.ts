import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '../servers/custodian.ts';
import { requireFile } from '../servers/debian.ts';
import { startMysql } from '../servers/mysql.ts';
import type { PrivateServer } from '../servers/private-server.ts';

const architecture = { x64: 'x86_64', arm64: 'aarch64' }[process.arch as string] ?? process.arch;

/** A private database server with a clock that can be moved at run time. The server's timers are not affected. */
export async function startMysqlWithMovableClock(): Promise<PrivateServer & { moveClock(ms: number): Promise<void> }> {
  const path = `/usr/lib/${architecture}-linux-gnu/faketime/libfaketimeMT.so.1`;
  const library = await requireFile({ path, debianPackage: 'libfaketime' });
  const file = join(temporaryDirectory('clock'), 'offset');
  /** Ahead of the machine's clock. */
  const moveClock = (ms: number) => writeFile(file, `${ms < 0 ? '' : '+'}${ms / 1000}s\n`);
  await moveClock(0);
  const mysql = await startMysql({
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  });
  return Object.assign(mysql, { moveClock });
}
