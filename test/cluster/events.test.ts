import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Load, startLoad, unlimited } from '../faults/load.ts';
import { deliveryViolations } from '../rig/observe/deliveries.ts';
import { eventViolations, type ReadEvent } from '../rig/observe/events.ts';
import { runCommand } from '../rig/process/command.ts';
import { answering, type Receiver, startReceiver } from '../rig/servers/receiver.ts';
import { until } from '../rig/until.ts';
import { databaseFaults, type Fault, redisFaults } from './faults.ts';
import { type ClusterStack, startClusterStack } from './stack.ts';

/** The stream of events, two readers and two webhooks while everything fails in turn. */

const KILLS = 20;
const FAILOVERS = 5;
const USERS = 16;
/** Between two kills of the same instance the load makes changes. */
const CALLS_BETWEEN = 50;

const TOKEN = 'reader-token';
const SERVICE_TOKENS = `reader:${createHash('sha256').update(TOKEN).digest('hex')}`;

let stack: ClusterStack;
let load: Load;
let receivers: Receiver[];
let secrets: string[];
const readers: { read: ReadEvent[]; done: Promise<void> }[] = [];
/** Once it is set, readers end there. */
let end = Number.POSITIVE_INFINITY;

beforeAll(async () => {
  stack = await startClusterStack('Redis Sentinel', { ...unlimited, SERVICE_TOKENS, WEBHOOK_ALLOW: '127.0.0.0/8' });
  const { proxy, smtp, services, certificate } = stack;
  const tls = { cert: readFileSync(certificate.cert), key: readFileSync(certificate.key) };
  // One that always works, and one that fails now and then: once, since later tries wait for minutes.
  receivers = await Promise.all([startReceiver({ tls }), startReceiver({ tls })]);
  const [, unsteady] = receivers as [Receiver, Receiver];
  const refused = new Set<string>();
  unsteady.answer = (response, { event }, request) => {
    const isRefused = event.number % 50 === 0 && !refused.has(event.id);
    if (isRefused) refused.add(event.id);
    return answering(isRefused ? 503 : 200)(response, event, request);
  };
  secrets = [];
  for (const { port } of receivers) {
    const args = ['add', `https://localhost:${port}/hook`, '--json'];
    const { stdout } = await runCommand('webhook', services[0]?.env ?? {}, args);
    secrets.push(JSON.parse(stdout).secret);
  }
  for (let i = 0; i < 2; i++) readers.push(startReader());
  load = startLoad({ stack: { services: [proxy], smtp } }, { users: USERS });
});
afterAll(async () => {
  for (const receiver of receivers ?? []) await receiver.stop();
  await stack?.stop();
});

/** Follows the feed from the first number, whatever fails. */
function startReader() {
  const read: ReadEvent[] = [];
  const follow = async () => {
    for (let next = 0; next < end; ) {
      const query = new URLSearchParams({ after: `${next}`, limit: '100', waitSeconds: '1' });
      const page = await fetch(`${stack.proxy.url}/api/events?${query}`, {
        headers: { authorization: `Bearer ${TOKEN}` },
      })
        .then(async (response) =>
          response.status === 200 ? ((await response.json()) as { data: ReadEvent[]; next: number }) : undefined,
        )
        .catch(() => undefined);
      if (!page) await pause(100);
      read.push(...(page?.data ?? []));
      next = page?.next ?? next;
    }
  };
  return { read, done: follow() };
}

/** Resolves once the load has had answers again. */
async function underLoad() {
  const { history } = load;
  const from = history.length;
  await until(() => history.slice(from).filter(({ status }) => status === 200).length >= CALLS_BETWEEN, {
    within: 90_000,
    every: 100,
    what: 'answers',
  });
}

async function happens({ inject, repair }: Fault) {
  await inject();
  await underLoad();
  await repair?.();
  await underLoad();
}

test(`no event is lost, doubled or swapped by ${KILLS} kill -9, ${FAILOVERS} failovers of the database and ${FAILOVERS} of Redis`, async () => {
  await underLoad();
  for (let i = 0; i < KILLS; i++) {
    const service = stack.services[i % 2];
    await service?.kill();
    await underLoad();
    await service?.restart();
    await stack.balanced();
  }
  for (let i = 0; i < FAILOVERS; i++)
    for (const cause of [databaseFaults['a database node killed'], redisFaults['a Redis master killed']])
      if (cause) await happens(await cause(stack, load));
  const { query: database } = stack.databases[0] ?? expect.unreachable('no database');
  await load.finish().catch(async (error: unknown) => {
    console.table(await database("select id, kind, attempts, due_at, created_at from outbox where state = 'pending'"));
    throw error;
  });
  await stack.cluster.settled();

  await until(async () => (await database('select id from activity where number is null limit 1')).length === 0, {
    within: 60_000,
    what: 'every number',
  });
  const [sequence] = await database<{ last: number }>('select last_number last from event_sequence');
  end = Number(sequence?.last);
  await Promise.all(readers.map(({ done }) => done));
  const [one, other] = readers.map(({ read }) => read) as [ReadEvent[], ReadEvent[]];
  expect(other).toEqual(one);
  const users = await database<{ id: string; email: string }>('select id, email from users');
  expect(eventViolations(load.history, one, new Map(users.map(({ id, email }) => [email, id])))).toEqual([]);

  const stored = one.map(({ id, number, data }) => ({ id, number, userId: data.userId }));
  for (const [i, { received }] of receivers.entries())
    await until(() => expect(deliveryViolations(stored, received, secrets[i] ?? '')).toEqual([]) ?? true, {
      within: 120_000,
      every: 2000,
      what: `every event at receiver ${i}`,
    });
  const twice = receivers.map(({ received }) => received.length - new Set(received.map(({ id }) => id)).size);
  console.log(
    `${load.history.length} calls, ${one.length} events in one order for two readers; ` +
      `delivered to ${receivers.length} receivers, ${twice.join(' and ')} of them again`,
  );
}, 1_800_000);
