import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Case, Result } from '../case.ts';
import { send } from '../client.ts';
import { figures, inTurn } from '../compare.ts';
import { CONNECTIONS } from '../load.ts';
import { median, memoryOfTree, percentile } from '../measure.ts';
import { openLoop } from '../open-loop.ts';
import type { Parts } from '../parts.ts';
import { addPeople } from '../people.ts';
import { logIn, PEOPLE, type Person } from '../servers.ts';
import { logInAs } from './passwords.ts';
import { readAs } from './reads.ts';

const READS_PER_SECOND = 200;

/** The service and users with a session. */
async function inhabited(parts: Parts, env: Record<string, string> = {}) {
  const { service, database } = await parts.startProduction(env);
  await addPeople(database, 3);
  const people = await Promise.all(Array.from({ length: PEOPLE }, (_, n) => logIn(service.url, database, n)));
  if (service.pid === undefined) throw new Error('the service does not run');
  return { url: service.url, pid: service.pid, people };
}

const reads = (url: string, people: Person[], seconds: number) =>
  openLoop(
    async (n) => {
      const { cookie } = people[n % people.length] as Person;
      const { status } = await send(`${url}/api/profile`, { headers: { Cookie: cookie } });
      if (status !== 200) throw new Error(`a read was answered ${status}`);
    },
    { perSecond: READS_PER_SECOND, seconds },
  );

const LOGINS_PER_SECOND = 200;
const ANSWERED_WITHIN_MS = 2000;

/** More logins than the cores can hash. */
export const storm: Case = {
  name: 'storm',
  async run({ parts, quick }) {
    const { url, people } = await inhabited(parts);
    const seconds = quick ? 5 : 20;
    await reads(url, people, 5);
    const quiet = await reads(url, people, seconds);
    const outcomes = { loggedIn: 0, refused: 0, other: 0 };
    const times: number[] = [];
    const logins = openLoop(
      async (n) => {
        const began = performance.now();
        const { path, headers = {}, body, isRight } = logInAs(people, n);
        const answer = await send(url + path, { headers, body });
        times.push(performance.now() - began);
        if (answer.status === 200 && isRight(answer.body)) outcomes.loggedIn++;
        else if (answer.status === 503 && Number(answer.headers['retry-after']) > 0) outcomes.refused++;
        else outcomes.other++;
      },
      { perSecond: LOGINS_PER_SECOND, seconds },
    );
    const beside = await reads(url, people, seconds);
    await logins;
    const inTime = times.filter((ms) => ms <= ANSWERED_WITHIN_MS).length - outcomes.other;
    const what = `${LOGINS_PER_SECOND} logins a second offered`;
    return [
      {
        what: `GET /api/profile at ${READS_PER_SECOND}/s, ${what} (ratio of p99 to alone)`,
        ours: beside,
        others: { alone: quiet },
        toLimit: { value: beside.p99 / quiet.p99, goal: { atMost: 3 } },
      },
      {
        what: `${what}: logged in, or 503 with Retry-After, within 2 s`,
        ours: {
          other: `${outcomes.loggedIn} + ${outcomes.refused}`,
          p50: percentile(times, 0.5),
          p99: percentile(times, 0.99),
        },
        toLimit: { value: inTime / times.length, goal: { atLeast: 1 } },
      },
    ];
  },
};

const OPEN = 10_000;
const AT_ONCE = 100;

/** Connections that are kept open and idle. */
export const connections: Case = {
  name: 'connections',
  async run({ parts, quick }) {
    const { url, pid, people } = await inhabited(parts);
    const seconds = quick ? 3 : 10;
    await reads(url, people, 5);
    const quiet = await reads(url, people, seconds);
    const before = memoryOfTree(pid);
    const opened: Socket[] = [];
    try {
      while (opened.length < OPEN)
        opened.push(...(await Promise.all(Array.from({ length: AT_ONCE }, () => openIdle(url)))));
      const each = ((memoryOfTree(pid) - before) * 1024) / OPEN;
      const beside = await reads(url, people, seconds);
      const ended = opened.filter(({ destroyed }) => destroyed).length;
      if (ended > 0) throw new Error(`${ended} connections were closed`);
      return [
        {
          what: `memory of an open connection, of ${OPEN.toLocaleString('en')}`,
          ours: { other: `${each.toFixed(1)} kB` },
          toLimit: { value: each, unit: 'kB', goal: { atMost: 12 } },
        },
        {
          what: `GET /api/profile at ${READS_PER_SECOND}/s beside them (ratio of p99 to alone)`,
          ours: beside,
          others: { alone: quiet },
          toLimit: { value: beside.p99 / quiet.p99, goal: { atMost: 1.5 } },
        },
      ];
    } finally {
      for (const socket of opened) socket.destroy();
    }
  },
};

/** A connection that has had one answer. */
async function openIdle(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(`GET /healthz HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
  await once(socket, 'data');
  return socket;
}

/** One process, and two. */
export const processes: Case = {
  name: 'processes',
  async run({ parts, quick }) {
    const [one, two] = [await inhabited(parts), await inhabited(parts, { WEB_CONCURRENCY: '2' })];
    const contenderOf = async ({ url, pid, people }: typeof one) => ({
      url,
      pid,
      ask: await readAs(people, url, '/api/profile'),
    });
    const amount = quick ? 5000 : 20_000;
    const before = process.cpuUsage();
    const rounds = await inTurn(
      { one: await contenderOf(one), two: await contenderOf(two) },
      { warmUp: 1, rounds: quick ? 2 : 5, amount },
    );
    const { user, system } = process.cpuUsage(before);
    const requests = amount * 2 * (1 + rounds.one.length);
    const generator = (user + system) / 1000 / requests;
    const ratio = median(rounds.two.map(({ perSecond }, n) => perSecond / (rounds.one[n]?.perSecond ?? Number.NaN)));
    const line: Result = {
      what: `GET /api/profile, ${CONNECTIONS} in flight, two processes to one (ratio of the rate)`,
      ours: figures(rounds.two),
      others: { 'one process': figures(rounds.one), 'the load generator': { cpu: generator } },
      toLimit: { value: ratio, goal: { atLeast: 1.5 } },
    };
    return [line];
  },
};
