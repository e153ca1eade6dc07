import { strictEqual } from 'node:assert';
import type { Case } from './case.ts';
import { call, repeat } from './client.ts';
import { compare, cpuTime } from './measure.ts';
import { addPeople, PASSWORD, personEmail } from './people.ts';

const ROUNDS = 8;
const REQUESTS = 3000;
const CONCURRENCY = 16;

/** The request behind every page: session from the cookie, one look into Redis, one row, as JSON. */
export const profile: Case = {
  name: 'profile',
  async run(parts) {
    const { service, database } = await parts.startProduction();
    await addPeople(database, 3);
    const { DATABASE_URL = '', REDIS_URL = '' } = service.env;
    const baseline = await parts.startBaseline('baseline.ts', { DATABASE_URL, REDIS_URL });
    const headers = { Cookie: await logIn(service.url, await personEmail(database, 7)) };

    const ask = (url: string) => () => call(`${url}/api/profile`, { headers });
    strictEqual((await ask(baseline.url)()).body, (await ask(service.url)()).body);

    const cpuPerRequest = (url: string, pid: number | undefined) => async () => {
      if (pid === undefined) throw new Error('the service does not run');
      const before = cpuTime(pid);
      await repeat(CONCURRENCY, (begun) => begun < REQUESTS, ask(url));
      return ((cpuTime(pid) - before) / REQUESTS) * 1000;
    };
    const measure = {
      ours: cpuPerRequest(service.url, service.pid),
      baseline: cpuPerRequest(baseline.url, baseline.pid),
    };
    await compare(2, measure); // both reach their compiled code
    const { ours, baseline: bare, ratio } = await compare(ROUNDS, measure);
    return [
      {
        what: 'GET /api/profile: CPU per request, to Koa, ioredis and mysql2 by hand',
        ours: `${ours.toFixed(0)} µs`,
        baseline: `${bare.toFixed(0)} µs`,
        value: ratio,
        goal: { atMost: 1.6 },
      },
    ];
  },
};

async function logIn(url: string, email: string): Promise<string> {
  const { headers } = await call(`${url}/auth/login`, { body: { email, password: PASSWORD } });
  return headers['set-cookie']?.[0]?.split(';')[0] ?? '';
}
