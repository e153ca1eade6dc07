import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PublicEvent } from '../../server/events/catalogue.ts';
import { callerOf } from '../contract/rig/callers.ts';
import { loggedIn } from '../contract/rig/scenario.ts';
import { orderViolations } from '../rig/observe/stream.ts';
import type { Service } from '../rig/process/service.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** The stream of events while its sequencer dies, its readers go away and its processes stop. */
const TOKENS = { reader: 'reader-token', other: 'other-token' };
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const SERVICE_TOKENS = Object.entries(TOKENS).map(([name, token]) => `${name}:${sha256(token)}`);
/** As in server/events/index.ts. */
const MAX_WAITING = 10;

interface Page {
  data: PublicEvent[];
  next: number;
  last: number;
}

let stack: Stack;
beforeAll(async () => {
  stack = await startStack('real', { instances: 2, env: { SERVICE_TOKENS: SERVICE_TOKENS.join(',') } });
});
afterAll(() => stack?.stop());

const at = (i: number) => stack.services[i] as Service;

const ask = (
  service: Service,
  query: object,
  { token = TOKENS.reader, signal }: { token?: string; signal?: AbortSignal } = {},
) =>
  fetch(`${service.url}/api/events?${new URLSearchParams(query as Record<string, string>)}`, {
    headers: { authorization: `Bearer ${token}` },
    ...(signal && { signal }),
  });

async function feed(service: Service, query: object): Promise<Page> {
  const response = await ask(service, query);
  expect(response.status).toBe(200);
  return (await response.json()) as Page;
}

/** Reads everything after a number until `isDone`, at one instance after the other while they are there. */
async function follow(after: number, isDone: (events: PublicEvent[]) => boolean): Promise<PublicEvent[]> {
  const found: PublicEvent[] = [];
  let next = after;
  for (let i = 0; !isDone(found); i++) {
    const page = await feed(at(i % 2), { after: next, limit: 7, waitSeconds: 1 }).catch(() => undefined);
    if (!page) continue;
    found.push(...page.data);
    next = page.next;
  }
  return found;
}

const unnumbered = () => stack.database('select id from activity where number is null');

const last = async () => (await feed(at(0), { after: 0, limit: 1 })).last;

// checks: 80
test('while instances are killed, every change has its event once, and two readers see one order', async () => {
  const users = await Promise.all([0, 1, 2, 3].map(() => loggedIn({ stack, call: callerOf('rest', at(0).url) })));
  const start = await lastAtRest();
  const acknowledged = new Map<string, number>();
  const change = async ({ id, session }: (typeof users)[number], n: number) => {
    for (let i = 0; i < 25; i++) {
      // A call that a kill has cut off may have changed the profile or not.
      const reply = await callerOf('rest', at((i + n) % 2).url)('profile.update', { bio: `${i}` }, { session }).catch(
        () => undefined,
      );
      if (reply?.status === 200) acknowledged.set(id, (acknowledged.get(id) ?? 0) + 1);
    }
  };
  const writers = Promise.all(users.map(change));
  const takenOver: number[] = [];
  // The lease has one of them: both are killed in turn.
  for (const killed of [0, 1]) {
    await at(killed).kill();
    const began = performance.now();
    const other = callerOf('rest', at(1 - killed).url);
    const { id, session } = users[0] as (typeof users)[number];
    await until(async () => (await other('profile.update', { location: `${began}` }, { session })).status === 200);
    acknowledged.set(id, (acknowledged.get(id) ?? 0) + 1);
    const { last: before } = await feed(at(1 - killed), { after: 0, limit: 1 });
    await until(async () => (await feed(at(1 - killed), { after: 0, limit: 1 })).last > before, { within: 20_000 });
    takenOver.push(Math.round(performance.now() - began));
    await at(killed).restart();
  }
  await writers;
  const end = await lastAtRest();
  const readers = await Promise.all([0, 1].map(() => follow(start, (events) => (events.at(-1)?.number ?? 0) >= end)));
  const [one = [], other = []] = readers;
  expect(other).toEqual(one);
  const numbers = one.map(({ number }) => number);
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  expect(new Set(one.map(({ id }) => id)).size).toBe(one.length);
  const caused = one.map(({ number, timestamp, data }) => ({ number, userId: data.userId, at: Date.parse(timestamp) }));
  expect(orderViolations(caused)).toEqual([]);
  for (const { id } of users) {
    const ofUser = one.filter(({ type, data }) => type === 'user.updated' && data.userId === id);
    const rows = await stack.database('select id from activity where user_id = ? and kind = ?', [
      id,
      'profile-changed',
    ]);
    expect(ofUser.map((event) => event.id).sort()).toEqual(rows.map((row) => row['id']).sort());
    expect(ofUser.length).toBeGreaterThanOrEqual(acknowledged.get(id) ?? 0);
  }
  console.log(`Events: ${one.length} changes, two kills; numbered again ${takenOver.join(' and ')} ms after a kill`);
});

/** Waits of a service until one more is refused. `after` is the last number, so no event ends the waits. */
async function waitInAllPlaces(service: Service, after: number, signal?: AbortSignal) {
  const waits = Array.from({ length: MAX_WAITING }, () =>
    ask(service, { after, waitSeconds: 25 }, signal ? { signal } : {}).catch(() => undefined),
  );
  const refused = await until(async () => {
    const response = await ask(service, { after, waitSeconds: 0.1 });
    return response.status === 429 ? response : undefined;
  });
  return { waits, refused };
}

/** The last number, once nothing waits for one. */
async function lastAtRest(): Promise<number> {
  await until(async () => (await unnumbered()).length === 0, { within: 20_000 });
  return last();
}

test('each service has its own places to wait; a disconnected client frees its place', async () => {
  const after = await lastAtRest();
  const gone = new AbortController();
  const { waits, refused } = await waitInAllPlaces(at(0), after, gone.signal);
  expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
  expect(refused.headers.get('ratelimit-limit')).toBe('10');
  expect(refused.headers.get('ratelimit-remaining')).toBe('0');
  expect(refused.headers.get('ratelimit-reset')).toBe(refused.headers.get('retry-after'));
  expect(await refused.json()).toMatchObject({ code: 'RATE_LIMITED' });
  expect((await ask(at(0), { after, waitSeconds: 0.1 }, { token: TOKENS.other })).status).toBe(200);
  expect((await ask(at(0), { after })).status).toBe(200);
  gone.abort();
  await Promise.all(waits);
  await until(async () => (await ask(at(0), { after, waitSeconds: 0.1 })).status === 200, { within: 5000 });
});

test('a stop ends waits at once, with an empty page', async () => {
  const after = await lastAtRest();
  const { waits } = await waitInAllPlaces(at(1), after);
  const began = performance.now();
  const stopped = at(1).stop();
  for (const response of await Promise.all(waits)) {
    expect(response?.status).toBe(200);
    expect(await response?.json()).toMatchObject({ data: [], next: after });
  }
  expect(await stopped).toBe(0);
  expect(performance.now() - began).toBeLessThan(15_000);
  await at(1).restart();
});
