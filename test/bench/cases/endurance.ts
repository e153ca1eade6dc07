import { readdirSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { photograph } from '../../contract/uploads/corpus.ts';
import { metricsOnFreePort } from '../../rig/observe/metrics.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import type { Case, Result } from '../case.ts';
import { call } from '../client.ts';
import { imageForm } from '../image-form.ts';
import { memoryOfTree } from '../measure.ts';
import { openLoop } from '../open-loop.ts';
import { addPeople, PASSWORD } from '../people.ts';
import { logIn, PEOPLE, type Person } from '../servers.ts';

const MINUTES = 30;
/** Fewer by ENDURANCE_RATE, on a machine that does much else. */
const PER_SECOND = Number(process.env['ENDURANCE_RATE'] ?? 100);
/** Each minute ends at rest, so that descriptors and memory of requests under way are not measured. */
const LOAD_SECONDS = 50;
const REST_MS = 10_000;

/** Limits that this load does not reach. */
const limits = {
  LIMIT_UPLOAD: '1000000/3600',
  LIMIT_UPLOAD_CHECK: '1000000/3600',
  UPLOAD_QUOTA: String(2 ** 40),
  LIMIT_MAIL: '1000000/3600',
  LIMIT_INBOX: '1000000/3600',
};

interface Sample {
  memory: number;
  heap: number;
  descriptors: number;
  /** Database connections in use: one that is never given back is in use at rest. */
  connections: number;
}

/** Mixed requests at a steady rate: neither memory nor descriptors nor connections grow. */
export const endurance: Case = {
  name: 'endurance',
  isApart: true,
  async run({ parts, quick }) {
    const [{ smtp, s3 }, metrics] = [await parts.startSinks(), await metricsOnFreePort()];
    const { service, database } = await parts.startProduction({
      SMTP_URL: smtp.url,
      METRICS_PORT: String(metrics.port),
      ...s3.env,
      ...limits,
    });
    const { url, pid } = service;
    if (pid === undefined) throw new Error('the service does not run');
    await addPeople(database, 3);
    const people = await Promise.all(Array.from({ length: PEOPLE }, (_, n) => logIn(url, database, n)));
    const request = requestsOf(url, people, await imageForm(await photograph(800, 600)));

    const samples: Sample[] = [];
    const take = async () => {
      const heap = (await metrics.value('nodejs_heap_size_used_bytes')) ?? Number.NaN;
      const used = (await metrics.value('account_database_connections_used')) ?? Number.NaN;
      const sample = {
        memory: memoryOfTree(pid),
        heap: heap / 2 ** 20,
        descriptors: readdirSync(`/proc/${pid}/fd`).length,
        connections: used,
      };
      samples.push(sample);
      console.log(new Date().toISOString(), JSON.stringify(sample));
    };
    const failures: string[] = [];
    const minutes = quick ? 3 : MINUTES;
    const tails: number[] = [];
    for (let minute = 0; minute < minutes; minute++) {
      const { p99 } = await openLoop((n) => request(n).catch((error) => failures.push(String(error))), {
        perSecond: PER_SECOND,
        seconds: LOAD_SECONDS,
      });
      tails.push(p99);
      await pause(REST_MS);
      await take();
    }
    if (failures.length > 0) console.log(`${failures.length} failures, such as`, failures.slice(0, 5));

    const [first, , last] = thirds(samples);
    const growth = (what: string, name: keyof Sample, unit: string): Result => {
      const [before, after] = [first, last].map((third) => mean(third.map((sample) => sample[name])));
      const most = Math.max(...samples.map((sample) => sample[name]));
      return {
        what: `${what} at rest in the last third of ${minutes} minutes at ${PER_SECOND}/s, to that in the first`,
        ours: { other: `${after?.toFixed(1)}${unit}` },
        others: {
          'in the first': { other: `${before?.toFixed(1)}${unit}` },
          'at most': { other: `${most.toFixed(1)}${unit}` },
        },
        toLimit: { value: (after ?? Number.NaN) / (before ?? Number.NaN), goal: { atMost: 1.1 } },
      };
    };
    return [
      growth('memory of all processes', 'memory', ' MB'),
      growth('heap', 'heap', ' MB'),
      growth('descriptors', 'descriptors', ''),
      {
        what: 'database connections in use at rest in the last third, at least',
        ours: {},
        toLimit: { value: Math.min(...last.map(({ connections }) => connections)), goal: { atMost: 0 } },
      },
      {
        what: `failed requests of ${minutes * LOAD_SECONDS * PER_SECOND}`,
        ours: { perSecond: PER_SECOND, p99: Math.max(...tails) },
        toLimit: { value: failures.length, goal: { atMost: 0 } },
      },
    ];
  },
};

/** The nth of the mixed requests, each from an address of its own. */
function requestsOf(url: string, people: Person[], upload: Awaited<ReturnType<typeof imageForm>>) {
  const opened: string[] = [];
  const ask = (
    path: string,
    { person, ...options }: { method?: string; body?: unknown; person?: Pick<Person, 'cookie'> } = {},
  ) => {
    const headers = { 'X-Forwarded-For': clientAddress(), ...(person && { Cookie: person.cookie }) };
    return call(url + path, { ...options, headers });
  };
  type Act = (person: Person, n: number) => Promise<unknown>;
  const read: Act = (person) => ask('/api/profile', { person });
  const update: Act = (person, n) => ask('/api/profile', { method: 'PUT', person, body: { bio: `Engine ${n}` } });
  const list: Act = (_, n) => ask(`/api/users?limit=20${n % 2 === 0 ? '' : '&q=ada'}`);
  const logInAgain: Act = async ({ email, device }) => {
    const headers = { 'X-Forwarded-For': clientAddress(), Cookie: device };
    const answer = await call(`${url}/auth/login`, { headers, body: { email, password: PASSWORD } });
    const session = answer.headers['set-cookie']?.find((line) => line.includes('auth_session='));
    if (session) opened.push(session.split(';')[0] ?? '');
  };
  const logOut: Act = async () => {
    const cookie = opened.shift();
    if (cookie !== undefined) await ask('/auth/logout', { method: 'POST', person: { cookie } });
  };
  const presign: Act = (person) =>
    ask('/api/upload/presign', { person, body: { filename: 'photo.png', contentType: 'image/png', size: 1000 } });
  const forgot: Act = ({ email }) => ask('/auth/forgot-password', { body: { email } });
  const image: Act = (person) => upload(url, person);
  const mix = [...Array(8).fill(read), ...Array(4).fill(update), ...Array(3).fill(list)] as Act[];
  mix.push(logInAgain, logOut, presign, forgot, image);
  return async (n: number) => (mix[n % mix.length] as Act)(people[n % people.length] as Person, n);
}

function thirds<T>(values: T[]): [T[], T[], T[]] {
  const third = Math.floor(values.length / 3);
  return [values.slice(0, third), values.slice(third, -third), values.slice(-third)];
}

const mean = (values: number[]) => values.reduce((sum, each) => sum + each, 0) / values.length;
