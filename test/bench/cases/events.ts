import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import mysql from 'mysql2/promise';
import { v7 as uuidv7 } from 'uuid';
import type { Service } from '../../rig/process/service.ts';
import { answering, type Receiver, startReceiver } from '../../rig/servers/receiver.ts';
import { until } from '../../rig/until.ts';
import type { Case, Result } from '../case.ts';
import { call } from '../client.ts';
import { cpuOfTree, median, percentile } from '../measure.ts';
import { openLoop } from '../open-loop.ts';
import type { Production } from '../parts.ts';
import { addPeople } from '../people.ts';
import { logIn, PEOPLE, type Person } from '../servers.ts';

const WEBHOOKS = 3;
const TOKEN = 'bench-reader';
const env = {
  // Receivers of webhooks without TLS.
  NODE_ENV: 'development',
  WEBHOOK_ALLOW: '127.0.0.0/8',
  SERVICE_TOKENS: `bench:${createHash('sha256').update(TOKEN).digest('hex')}`,
  LIMIT_CHANGE: '1000000/3600',
};

const run = promisify(execFile);
const cli = join(import.meta.dirname, '../../../server/cli/webhook.ts');

interface Started extends Production {
  people: Person[];
  pid: number;
}

interface Round {
  p50: number;
  p99: number;
  /** In ms, per change. */
  cpu: number;
}

interface Stream {
  data: { number: number; data: { userId: string } }[];
  next: number;
}

/** The stream of events: its lag, and what webhooks cost. */
export const events: Case = {
  name: 'events',
  isLong: true,
  async run({ parts, quick }) {
    const seconds = quick ? 3 : 10;
    const start = async (): Promise<Started> => {
      const { service, database } = await parts.startProduction(env);
      await addPeople(database, 3);
      const people = await Promise.all(Array.from({ length: PEOPLE }, (_, n) => logIn(service.url, database, n)));
      if (service.pid === undefined) throw new Error('the service does not run');
      return { service, database, people, pid: service.pid };
    };
    const [plain, hooked] = [await start(), await start()];
    const receivers = await Promise.all(Array.from({ length: WEBHOOKS }, () => startReceiver()));
    try {
      const results: Result[] = [await lagAtRest(plain, quick ? 20 : 200), await lagUnderLoad(plain, seconds)];
      await addWebhooks(hooked.service, receivers);
      results.push(...(await costOfWebhooks(plain, hooked, receivers, { seconds, rounds: quick ? 1 : 3 })));
      results.push(await badReceivers(hooked, receivers[0] as Receiver, seconds));
      // Last: the deliveries stay.
      results.push(await costOfRows(plain, hooked, quick ? 20_000 : 200_000));
      return results;
    } finally {
      for (const receiver of receivers) await receiver.stop();
    }
  },
};

const change = ({ service, people }: Started, n: number) =>
  call(`${service.url}/api/profile`, {
    method: 'PUT',
    headers: { Cookie: (people[n % people.length] as Person).cookie },
    body: { bio: `Engine ${uuidv7()}` },
  });

const read = async (service: Service, query: Record<string, string>): Promise<Stream> => {
  const url = `${service.url}/api/events?${new URLSearchParams(query)}`;
  return JSON.parse((await call(url, { headers: { Authorization: `Bearer ${TOKEN}` } })).body);
};

/** The last number, once every event has one. */
async function lastNumber({ service, database }: Production): Promise<number> {
  await until(async () => (await database.query('select 1 from activity where number is null limit 1')).length === 0);
  const [row] = await database.query<{ last: number }>('select last_number as last from event_sequence');
  const last = Number(row?.last);
  await read(service, { after: String(last), limit: '1' });
  return last;
}

/** From the answer of a change to the answer of a reader that waits for it. */
async function lagAtRest(production: Started, changes: number): Promise<Result> {
  const times: number[] = [];
  let after = await lastNumber(production);
  for (let n = 0; n < changes; n++) {
    const waiting = read(production.service, { after: String(after), limit: '100', waitSeconds: '10' });
    await change(production, n);
    const changed = performance.now();
    const { next } = await waiting;
    times.push(performance.now() - changed);
    after = next;
  }
  const p99 = percentile(times, 0.99);
  return {
    what: 'lag of the feed at rest',
    ours: { p50: percentile(times, 0.5), p99 },
    toLimit: { value: p99, unit: 'ms', goal: { atMost: 100 } },
  };
}

/** Changes by bare connections: the service could not make as many beside a load generator on two cores. */
const CHANGES_PER_SECOND = 2000;
const CHANGES_AT_ONCE = 10;

async function lagUnderLoad(production: Production, seconds: number): Promise<Result> {
  const { service } = production;
  const pool = mysql.createPool({ uri: service.env['DATABASE_URL'] ?? '', connectionLimit: 20 });
  const committed = new Map<string, number>();
  const lags: number[] = [];
  const start = await lastNumber(production);
  let next = start;
  let isOver = false;
  const reader = (async () => {
    while (!isOver || lags.length < committed.size) {
      const page = await read(service, { after: String(next), limit: '1000', waitSeconds: '1' });
      const now = performance.now();
      for (const { data } of page.data) {
        const at = committed.get(data.userId);
        // An event may be read before its commit is answered here.
        lags.push(at === undefined ? 0 : now - at);
      }
      next = page.next;
    }
  })();
  let made = 0;
  const write = async () => {
    const users = Array.from({ length: CHANGES_AT_ONCE }, () => `user_${uuidv7()}`);
    const values = users.map(
      (user) => `('${uuidv7()}', '${user}', 'verified', 'user', '', '', '', '{}', ${Date.now()})`,
    );
    await pool.query(
      `insert into activity (id, user_id, kind, actor, address, device, request_id, details, created_at) values ${values}`,
    );
    const now = performance.now();
    for (const user of users) committed.set(user, now);
    made += users.length;
  };
  const began = performance.now();
  await openLoop(write, { perSecond: CHANGES_PER_SECOND / CHANGES_AT_ONCE, seconds });
  const perSecond = made / ((performance.now() - began) / 1000);
  isOver = true;
  await reader;
  await pool.end();
  const p99 = percentile(lags, 0.99);
  return {
    what: `lag of the feed at ${CHANGES_PER_SECOND} changes a second, ${CHANGES_AT_ONCE} a transaction`,
    ours: { perSecond, p50: percentile(lags, 0.5), p99 },
    toLimit: { value: p99, unit: 'ms', goal: { atMost: 1000 } },
  };
}

async function addWebhooks(service: Service, receivers: Receiver[]): Promise<void> {
  for (const { url } of receivers)
    await run(process.execPath, [cli, 'add', `${url}/hook`], { env: { ...process.env, ...service.env } });
}

/** CPU of the database server for many events: alone, and with the rows of their deliveries. No delivery is made. */
async function costOfRows(plain: Production, hooked: Production, events: number): Promise<Result> {
  const batch = 1000;
  const [{ file } = { file: '' }] = await plain.database.query<{ file: string }>('select @@pid_file as file');
  const pid = Number(readFileSync(file, 'utf8'));
  const countOf = async ({ database }: Production) =>
    Number((await database.query<{ n: number }>('select count(*) as n from webhook_deliveries'))[0]?.n);
  const measure = async (production: Production, rows: number): Promise<number> => {
    const { query } = production.database;
    const former = await countOf(production);
    const before = cpuOfTree(pid);
    for (let made = 0; made < events; made += batch) {
      const values = Array.from(
        { length: batch },
        () => `('${uuidv7()}', 'user_${uuidv7()}', 'verified', 'user', '', '', '', '{}', ${Date.now()})`,
      );
      await query(
        `insert into activity (id, user_id, kind, actor, address, device, request_id, details, created_at) values ${values}`,
      );
    }
    await lastNumber(production);
    await until(async () => (await countOf(production)) >= former + rows, {
      within: 60_000,
      every: 1000,
      what: 'the deliveries',
    });
    return (cpuOfTree(pid) - before) / events;
  };
  // A lease of nobody: the deliveries stay.
  await hooked.database.query("update webhooks set owner = 'bench', due_at = 9999999999999");
  const alone = await measure(plain, 0);
  const cpu = await measure(hooked, events * WEBHOOKS);
  return {
    what: `database server: ${events} events with the deliveries of ${WEBHOOKS} webhooks (ratio to the events alone)`,
    ours: { cpu },
    others: { 'without webhooks': { cpu: alone } },
    toLimit: { value: cpu / alone, goal: { atMost: 3 } },
  };
}

/** The same updates with and without webhooks, at a rate that leaves the machine idle time. */
async function costOfWebhooks(
  plain: Started,
  hooked: Started,
  receivers: Receiver[],
  { seconds, rounds }: { seconds: number; rounds: number },
): Promise<Result[]> {
  const perSecond = 50;
  const amount = perSecond * seconds;
  const settled = (before: number) => () => receivers.every(({ received }) => received.length >= before + amount);
  const measured = { plain: [] as Round[], hooked: [] as Round[] };
  const lags: number[] = [];
  const measure = async (
    production: Started,
    done: (before: number) => () => boolean,
  ): Promise<Round & { before: number }> => {
    const before = receivers[0]?.received.length ?? 0;
    const cpu = cpuOfTree(production.pid);
    const { p50, p99 } = await openLoop((n) => change(production, n), { perSecond, seconds });
    await until(done(before), { within: 60_000, what: 'every delivery' });
    return { p50, p99, cpu: (cpuOfTree(production.pid) - cpu) / amount, before };
  };
  await lastNumber(hooked);
  // Warm-up; a delivery proves that the service knows the webhooks.
  await change(hooked, 0);
  await until(() => receivers.every(({ received }) => received.length > 0), { within: 60_000, what: 'a delivery' });
  for (let round = -1; round < rounds; round++) {
    const a = await measure(plain, () => () => true);
    const b = await measure(hooked, settled);
    for (const { at, event } of receivers.flatMap(({ received }) => received.slice(b.before)))
      lags.push(at + performance.timeOrigin - Date.parse(event.timestamp));
    if (round < 0) continue;
    measured.plain.push(a);
    measured.hooked.push(b);
  }
  const of = (rounds: Round[]) => ({
    p50: median(rounds.map(({ p50 }) => p50)),
    p99: median(rounds.map(({ p99 }) => p99)),
    cpu: median(rounds.map(({ cpu }) => cpu)),
  });
  const [without, withThree] = [of(measured.plain), of(measured.hooked)];
  const perDelivery = (withThree.cpu - without.cpu) / WEBHOOKS;
  return [
    {
      what: `PUT /api/profile at ${perSecond}/s with ${WEBHOOKS} webhooks (ratio of p50 to without)`,
      ours: withThree,
      others: { 'without webhooks': without },
      toLimit: { value: withThree.p50 / without.p50, goal: { atMost: 1.15 } },
    },
    {
      what: 'a delivery over http',
      ours: {
        p50: percentile(lags, 0.5),
        p99: percentile(lags, 0.99),
        cpu: perDelivery,
        other: `${(1000 / perDelivery).toFixed(0)} a second and core`,
      },
    },
  ];
}

/** Deliveries to a good receiver beside four bad ones. */
async function badReceivers(hooked: Started, good: Receiver, seconds: number): Promise<Result> {
  const perSecond = 20;
  const p99 = async () => {
    const before = good.received.length;
    await openLoop((n) => change(hooked, n), { perSecond, seconds });
    await until(() => good.received.length >= before + perSecond * seconds, { within: 60_000, what: 'deliveries' });
    const lags = good.received
      .slice(before)
      .map(({ at, event }) => at + performance.timeOrigin - Date.parse(event.timestamp));
    return { p50: percentile(lags, 0.5), p99: percentile(lags, 0.99) };
  };
  const alone = await p99();
  const large = 'x'.repeat(64 * 1024);
  const bad = await Promise.all(
    [
      () => undefined,
      answering(500),
      (response: import('node:http').ServerResponse) => void response.destroy(),
      (response: import('node:http').ServerResponse) => {
        response.writeHead(200);
        let sent = 0;
        const timer = setInterval(() => {
          response.write(large);
          if (++sent === 1024) response.end();
        }, 20);
        response.on('close', () => clearInterval(timer));
      },
    ].map((answer) => startReceiver({ answer })),
  );
  await addWebhooks(hooked.service, bad);
  await change(hooked, 0);
  await until(() => bad.every(({ received }) => received.length > 0), { within: 60_000, what: 'bad receivers' });
  const beside = await p99();
  for (const receiver of bad) await receiver.stop();
  return {
    what: 'a delivery beside receivers that hang, fail, close or return 64 MB slowly (ratio of p99 to alone)',
    ours: beside,
    others: { alone },
    toLimit: { value: beside.p99 / alone.p99, goal: { atMost: 1.5 } },
  };
}
