import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Load, outcomeOf, startLoad, summary, unlimited } from '../faults/load.ts';
import { type Action, asUnknown, type Entry, endedSessions, violations } from '../rig/observe/history.ts';
import { until } from '../rig/until.ts';
import { databaseFaults, redisFaults, serviceFaults } from './faults.ts';
import { type ClusterStack, startClusterStack } from './stack.ts';

const USERS = 16;
/** The system has recovered if every kind of call succeeds for this long. */
const CALM_MS = 3000;
const kinds: Action[] = [
  ...(['register', 'verify', 'login', 'logout', 'logoutAll', 'endSession'] as const),
  ...(['read', 'change', 'declare', 'upload', 'forgot', 'reset'] as const),
];

/** Allowed answers besides 503 during faults; `violations` checks that they are correct. */
const rightAnswers: Partial<Record<Action, number[]>> = {
  register: [201],
  verify: [200],
  forgot: [200],
  reset: [200, 400],
  endSession: [200, 401, 404],
};
const isWrong = ({ action, status = 503 }: Entry) =>
  status !== 503 && !(rightAnswers[action] ?? [200, 401]).includes(status);

const isFailure = ({ status = 503 }: Entry) => status === 503;

const plan = [
  { group: 'Redis Cluster', faults: { ...databaseFaults, ...redisFaults, ...serviceFaults } },
  { group: 'Redis Sentinel', faults: redisFaults },
] as const;

describe.each(plan)('two instances behind HAProxy, on a cluster of databases and a $group', ({ group, faults }) => {
  let stack: ClusterStack;
  let load: Load;
  const table: Record<string, unknown>[] = [];
  const faultTimes: number[] = [];
  const lostWrites: { from: number; to: number }[] = [];

  beforeAll(async () => {
    stack = await startClusterStack(group, unlimited);
    const { proxy, smtp } = stack;
    load = startLoad({ stack: { services: [proxy], smtp } }, { users: USERS });
    await normal(load, 0);
  });
  afterAll(async () => {
    console.table(table);
    await stack?.stop();
  });

  const cases = Object.entries(faults).flatMap(([name, cause]) => [1, 2].map((time) => ({ name, time, cause })));
  test.each(cases)('$name ($time)', async ({ name, time, cause }) => {
    const { inject, repair, writesLostSince, restoredSessions } = await cause(stack, load);
    const first = load.history.length;
    const began = performance.now();
    await inject();
    faultTimes.push(began, performance.now());
    if (writesLostSince !== undefined) lostWrites.push({ from: writesLostSince, to: performance.now() });
    const toNormal = await normal(load, began);
    const restored = await restoredSessions?.();
    if (restored !== undefined) expect(restored).toBeGreaterThan(0);

    const repairedAt = performance.now();
    await repair?.();
    faultTimes.push(repairedAt, performance.now());
    const backToNormal = await normal(load, repairedAt);

    const calls = load.history.slice(first);
    await load.tryEnded(writesLostSince ?? began);
    const failures = calls.filter(isFailure);
    const count = (which: (call: Entry) => boolean) => failures.filter(which).length;
    const row = {
      fault: `${name} (${time})`,
      calls: calls.length,
      '503': count(({ status }) => status === 503),
      '503 of the proxy': count(({ proxyStatus }) => proxyStatus === 503),
      'cut off': count(({ status, proxyStatus }) => status === undefined && proxyStatus !== 503),
      ...(restored && { 'ended, and in Redis again': restored }),
      'longest, s': seconds(Math.max(...calls.map(({ start, end }) => end - start))),
      'normal after, s': seconds(toNormal),
      'after the return, s': seconds(backToNormal),
    };
    table.push(row);
    console.log(row);
    if (name === 'a rolling restart') expect(failures).toEqual([]);
  });

  test('no acknowledged change was lost or undone', async () => {
    await load.finish();
    await stack.cluster.settled();
    const { history } = load;
    const { databases, smtp, s3 } = stack;
    const ended = endedSessions(history).length;
    for (const { query: database } of databases) {
      const known = { crashes: faultTimes, forgotten: lostWrites };
      const outcome = await outcomeOf({ stack: { database, smtp }, objects: s3 }, known);
      expect(violations(history.map(asUnknown), outcome)).toEqual([]);
    }
    expect(history.filter(isWrong)).toEqual([]);
    console.log(
      `${group}: ${history.length} calls, acknowledged: ${summary(history)}; lost 0; ` +
        `${ended} sessions ended, alive afterwards 0; reset tokens spent twice 0; unexpected responses: 0`,
    );
  });
});

/**
 * Waits until every kind of call has succeeded for CALM_MS without a failure. Returns the ms from `since` to the last
 * failure.
 */
async function normal({ history }: Load, since: number): Promise<number> {
  let from = since;
  await until(
    () => {
      const calls = history.slice(history.findLastIndex(({ end }) => end < since) + 1);
      from = Math.max(since, ...calls.filter(isFailure).map(({ end }) => end));
      const succeeded = new Set(
        calls.filter((call) => call.start >= from && isSuccess(call)).map(({ action }) => action),
      );
      return kinds.every((kind) => succeeded.has(kind)) && performance.now() > from + CALM_MS;
    },
    { within: 90_000, every: 200, what: 'the return to normal' },
  );
  return from - since;
}

const isSuccess = ({ status = 0 }: Entry) => status >= 200 && status < 300;
const seconds = (ms: number) => Number((ms / 1000).toFixed(1));
