import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { clientAddress } from '../rig/address.ts';
import type { Case } from './case.ts';
import { call, repeat } from './client.ts';
import { compare } from './measure.ts';
import { addPeople, PASSWORD, personEmail } from './people.ts';

const run = promisify(execFile);

const ROUNDS = 5;
const ROUND_MS = 2000;
const CONCURRENCY = 4 * availableParallelism();
const PEOPLE = 50;

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
    const logins = async () => {
      const started = performance.now();
      let n = 0;
      const done = await repeat(
        CONCURRENCY,
        () => performance.now() - started < ROUND_MS,
        () => logIn(n++),
      );
      return done / ((performance.now() - started) / 1000);
    };
    await repeat(
      CONCURRENCY,
      (begun) => begun < 100,
      () => logIn(0),
    );
    const { ours, baseline, ratio } = await compare(ROUNDS, { ours: logins, baseline: hashes });
    return [
      {
        what: 'POST /auth/login: per second, to PBKDF2 in a process that does nothing else',
        ours: `${ours.toFixed(0)}/s`,
        baseline: `${baseline.toFixed(0)}/s`,
        value: ratio,
        goal: { atLeast: 0.9 },
      },
    ];
  },
};

async function hashes(): Promise<number> {
  const { stdout } = await run(process.execPath, [join(import.meta.dirname, 'hashing.ts'), String(ROUND_MS)]);
  return Number(stdout);
}
