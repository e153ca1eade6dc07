import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createWorker } from '../../../server/workers/worker.ts';
import { until } from '../../rig/until.ts';

const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn(), fatal: vi.fn() };

/** A worker of two places, without rows in its table; each row in work waits for `finish`. */
async function started() {
  const taken: number[] = [];
  const inWork: (() => void)[] = [];
  const worker = createWorker<string>({
    name: 'test',
    atOnce: 2,
    leases: {
      leaseMs: 20_000,
      take: async (most) => {
        taken.push(most);
        return [];
      },
      renew: async () => undefined,
    },
    work: () => new Promise((resolve) => inWork.push(resolve)),
    log,
  });
  worker.start();
  await until(() => taken.length > 0);
  return { worker, taken, finish: () => inWork.splice(0).forEach((resolve) => void resolve()) };
}

test('no more places are reserved than there are, those in work included', async () => {
  const { worker, finish } = await started();
  const [first, second, third] = [worker.reserve(), worker.reserve(), worker.reserve()];
  expect([typeof first, typeof second, third]).toEqual(['function', 'function', undefined]);
  first?.();
  worker.begin('a row', performance.now());
  expect(worker.reserve()).toBeUndefined();
  second?.();
  expect(worker.reserve()).toBeTypeOf('function');
  finish();
  await worker.stop();
});

test('rows are taken only for places that are neither in use nor reserved', async () => {
  const { worker, taken, finish } = await started();
  worker.reserve();
  worker.wake();
  await until(() => taken.at(-1) === 1);
  worker.begin('a row', performance.now());
  finish();
  await worker.stop();
});

test('a worker that does not run, or is ending, has no place', async () => {
  const { worker } = await started();
  await worker.stop();
  expect(worker.reserve()).toBeUndefined();
});

test('a row that waits for another one of its user begins as soon as that ends', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'setTimeout', 'performance'] });
  const due = ['first', 'second', 'third'];
  const done: string[] = [];
  const worker = createWorker<string>({
    name: 'test',
    atOnce: 4,
    leases: {
      leaseMs: 20_000,
      batch: 1,
      hasFull: (inWork) => inWork.length > 0,
      take: async (_most, inWork = []) => (inWork.length > 0 ? [] : due.splice(0, 1)),
      renew: async () => undefined,
    },
    async work(row) {
      await nextTurn();
      done.push(row);
    },
    log,
  });
  worker.start();
  // No time passes.
  for (let i = 0; i < 50; i++) await nextTurn();
  expect(done).toEqual(['first', 'second', 'third']);
  vi.useRealTimers();
  await worker.stop();
});

describe('a row in work', () => {
  afterEach(() => vi.useRealTimers());

  /** A worker with one row in work; `isHeld` says whether its lease allows a step. */
  function working(renew: () => Promise<void>) {
    vi.useFakeTimers({ toFake: ['setInterval', 'setTimeout', 'performance'] });
    let isHeld = () => false;
    const worker = createWorker<string>({
      name: 'test',
      atOnce: 1,
      leases: { leaseMs: 20_000, take: async () => [], renew },
      work: (_row, requireLease) => {
        isHeld = () => {
          try {
            requireLease();
            return true;
          } catch {
            return false;
          }
        };
        return new Promise(() => undefined);
      },
      log,
    });
    worker.start();
    worker.begin('a row', performance.now());
    return () => isHeld();
  }

  test('is held while its lease is renewed', async () => {
    const isHeld = working(async () => undefined);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(isHeld()).toBe(true);
  });

  test('is lost, and never held again, once its lease has not been renewed in time', async () => {
    const renew = vi.fn().mockRejectedValue(new Error('the database is away'));
    const isHeld = working(renew);
    await vi.advanceTimersByTimeAsync(14_000);
    expect(isHeld()).toBe(true);
    await vi.advanceTimersByTimeAsync(2000);
    expect(isHeld()).toBe(false);
    renew.mockResolvedValue(undefined);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(isHeld()).toBe(false);
  });

  test('stays lost when a renewal succeeds that began before', async () => {
    const late = () => new Promise<void>((resolve) => setTimeout(resolve, 8000));
    const isHeld = working(vi.fn(late).mockRejectedValueOnce(new Error('the database is away')));
    await vi.advanceTimersByTimeAsync(19_000);
    expect(isHeld()).toBe(false);
  });
});
