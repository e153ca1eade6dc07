import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { clientAddress } from '../rig/address.ts';
import type { Case } from './case.ts';
import { call, repeat } from './client.ts';
import { compare, cpuTime, median } from './measure.ts';
import { addPeople, PASSWORD, personEmail } from './people.ts';

const run = promisify(execFile);

const ROUNDS = 9;
const ROUND_MS = 1200;
/** Enough that there is always a password to hash, also while the other parts of the machine wait for their turn. */
const CONCURRENCY = 16 * availableParallelism();
const PEOPLE = 50;
const WARM_UP = 3000;

/** Logins with the right password, each from an address of its own, to as many PBKDF2 as the machine can do. */
export const login: Case = {
  name: 'login',
  async run(parts) {
    const { service, database } = await parts.startProduction();
    await addPeople(database, 3);
    const emails = await Promise.all(Array.from({ length: PEOPLE }, (_, n) => personEmail(database, n)));

    const logIn = (n: number) =>
      call(`${service.url}/auth/login`, {
        headers: { 'X-Forwarded-For': clientAddress() },
        body: { email: emails[n % PEOPLE], password: PASSWORD },
      });
    const { pid } = service;
    if (pid === undefined) throw new Error('the service does not run');
    const cpu: { logins: number[]; hashes: number[] } = { logins: [], hashes: [] };
    const logins = async () => {
      const [started, cpuBefore] = [performance.now(), cpuTime(pid)];
      let n = 0;
      const done = await repeat(
        CONCURRENCY,
        () => performance.now() - started < ROUND_MS,
        () => logIn(n++),
      );
      cpu.logins.push((cpuTime(pid) - cpuBefore) / done);
      return done / ((performance.now() - started) / 1000);
    };
    const hashes = async () => {
      const { stdout } = await run(process.execPath, [join(import.meta.dirname, 'hashing.ts'), String(ROUND_MS)]);
      const [perSecond = Number.NaN, cpuEach = Number.NaN] = stdout.split(' ').map(Number);
      cpu.hashes.push(cpuEach);
      return perSecond;
    };
    await warmUp(service.url);
    const { ours, baseline, ratio } = await compare(ROUNDS, { ours: logins, baseline: hashes });
    return [
      {
        what: 'POST /auth/login: per second, to PBKDF2 in a process that does nothing else',
        ours: `${ours.toFixed(0)}/s`,
        baseline: `${baseline.toFixed(0)}/s`,
        value: ratio,
        goal: { atLeast: 0.9 },
      },
      {
        what: 'POST /auth/login: CPU of the service, to that of the hash in it',
        ours: `${median(cpu.logins).toFixed(2)} ms`,
        baseline: `${median(cpu.hashes).toFixed(2)} ms`,
        value: median(cpu.logins) / median(cpu.hashes),
      },
    ];
  },
};

/** All that a login does but the hash: compiled by now in a process that has run for a while, and quickly done. */
async function warmUp(url: string): Promise<void> {
  const refused = { headers: { 'X-Forwarded-For': clientAddress() }, body: { email: 'a@example.test', password: 'x' } };
  for (const ask of [() => call(`${url}/api/users?limit=1`), () => call(`${url}/auth/login`, refused)]) {
    await repeat(
      8,
      (begun) => begun < WARM_UP,
      // Past the limit of its address a login is refused before it is looked at.
      () => ask().catch(() => undefined),
    );
  }
}
