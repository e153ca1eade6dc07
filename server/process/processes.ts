import cluster, { type Worker } from 'node:cluster';
import type { Log } from '../log.ts';

/** Ended sooner, a process has crashed at its start: the next one waits, twice as long each time. */
const STABLE_MS = 10_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

interface Options<Report> {
  log: Log;
  /** Once, when all are ready, with what one of them reported by `reportReady`. */
  onReady(report: Report): void;
}

export interface Processes {
  /** Resolves to the exit code once none is left: that of the first, where it ends before it listens, or after `stop`. */
  readonly ended: Promise<number>;
  /** Passes the signal on, and starts no more. */
  stop(signal: NodeJS.Signals): void;
}

/**
 * Runs this program in `count` processes, which share its port. What ends a start, such as a taken port, ends the first one,
 * with its message: the others follow once that one listens. Afterwards each that ends is replaced.
 */
export function runProcesses<Report>(count: number, { log, onReady }: Options<Report>): Processes {
  const { promise: ended, resolve } = Promise.withResolvers<number>();
  const ready = new Set<number>();
  const timers = new Set<NodeJS.Timeout>();
  let isListening = false;
  let stopSignal: NodeJS.Signals | undefined;
  let isAnnounced = false;
  let exitCode = 0;
  let pause = 0;

  const startAfter = (ms: number) => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      start();
    }, ms);
    timers.add(timer);
  };

  // Each accepts for itself: a connection handed to a process that has just died would be neither answered nor closed.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const start = () => {
    const startedAt = performance.now();
    const worker = cluster.fork();
    worker.on('message', (message: { ready?: Report }) => {
      if (!message.ready) return;
      ready.add(worker.id);
      if (ready.size < count || isAnnounced) return;
      isAnnounced = true;
      onReady(message.ready);
    });
    // A message that reaches it too late is an error; its exit says more.
    worker.on('error', () => undefined);
    worker.once('listening', () => {
      if (isListening) return;
      isListening = true;
      for (let i = 1; i < count && !stopSignal; i++) start();
    });
    worker.once('exit', (code, signal) => {
      ready.delete(worker.id);
      if (stopSignal || !isListening) {
        // Before it can be stopped in order, the signal itself ends a process that has no requests yet.
        exitCode ||= signal === stopSignal ? 0 : (code ?? 1);
        if (running(worker).length === 0) resolve(exitCode);
        return;
      }
      pause =
        performance.now() - startedAt < STABLE_MS ? Math.min(Math.max(2 * pause, FIRST_PAUSE_MS), LONGEST_PAUSE_MS) : 0;
      log.error({ ended: worker.process.pid, code, signal, pauseMs: pause }, 'a process has ended and is replaced');
      startAfter(pause);
    });
  };
  start();

  return {
    ended,
    stop(signal) {
      stopSignal ??= signal;
      for (const timer of timers) clearTimeout(timer);
      const workers = running();
      for (const worker of workers) worker.process.kill(signal);
      if (workers.length === 0) resolve(exitCode);
    },
  };
}

const running = (except?: Worker): Worker[] =>
  Object.values(cluster.workers ?? {}).filter((worker): worker is Worker => worker !== undefined && worker !== except);

/** Whether this process is one of several that another one has started. */
export const isOneOfSeveral = (): boolean => cluster.isWorker;

/** Whether others at this port answer requests, so that this one need not before it is ready. */
export const hasOthers = (): boolean => cluster.isWorker && cluster.worker?.id !== 1;

/** Tells the process that started this one that it is ready. */
export function reportReady<Report extends object>(report: Report): void {
  process.send?.({ ready: report });
}
