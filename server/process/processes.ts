import cluster, { type Worker } from 'node:cluster';
import type { Log } from '../telemetry/log.ts';
import { createPulse, SIGN_MS } from './pulse.ts';

/** A process that ends sooner counts as crashed at its start: the pause before the next one doubles each time. */
const STABLE_MS = 10_000;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 30_000;

interface Options<Report> {
  log: Log;
  /** Called once when all processes are ready, with the report of one of them (`reportReady`). */
  onReady(report: Report): void;
}

export interface Processes {
  /**
   * Resolves to the exit code when no process is left: that of the first one if it ends before it listens, or after
   * `stop`.
   */
  readonly ended: Promise<number>;
  /** Forwards the signal and starts no more processes. */
  stop(signal: NodeJS.Signals): void;
}

/**
 * Runs this program in `count` processes that share its port. The others start once the first listens, so a failed
 * start (a taken port) is reported once. Later, each process that ends is replaced; one that hangs is killed.
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

  // Each process accepts its own connections: one handed to a process that has just died would be neither answered nor
  // closed.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const start = () => {
    const startedAt = performance.now();
    const worker = cluster.fork();
    const pulse = createPulse();
    const checks = setInterval(() => {
      if (!pulse.isLost()) return;
      clearInterval(checks);
      log.error({ hanging: worker.process.pid }, 'a process hangs and is killed');
      worker.process.kill('SIGKILL');
    }, SIGN_MS);
    // Any message is a sign of life.
    worker.on('message', (message: { ready?: Report }) => {
      pulse.sign();
      if (!message.ready) return;
      ready.add(worker.id);
      if (ready.size < count || isAnnounced) return;
      isAnnounced = true;
      onReady(message.ready);
    });
    // A message to a process that has ended is an error; the exit event reports more.
    worker.on('error', () => undefined);
    worker.once('listening', () => {
      if (isListening) return;
      isListening = true;
      for (let i = 1; i < count && !stopSignal; i++) start();
    });
    worker.once('exit', (code, signal) => {
      clearInterval(checks);
      ready.delete(worker.id);
      if (stopSignal || !isListening) {
        // A process without requests yet ends by the signal itself, before it can stop gracefully.
        exitCode ||= signal === stopSignal ? 0 : (code ?? 1);
        if (running(worker).length === 0) resolve(exitCode);
        return;
      }
      pause =
        performance.now() - startedAt < STABLE_MS ? Math.min(Math.max(2 * pause, FIRST_PAUSE_MS), MAX_PAUSE_MS) : 0;
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

/** True if another process of this program started this one. */
export const isOneOfSeveral = (): boolean => cluster.isWorker;

/** True if other processes already answer on this port, so that this one can finish its start first. */
export const hasOthers = (): boolean => cluster.isWorker && cluster.worker?.id !== 1;

/** Tells the process that started this one, from now on, that the event loop turns. Without it a hung process stays. */
export function giveSignsOfLife(): void {
  // The first process may have ended since.
  setInterval(() => process.connected && process.send?.({ alive: true }), SIGN_MS).unref();
}

/** Tells the process that started this one that it is ready. */
export function reportReady<Report extends object>(report: Report): void {
  process.send?.({ ready: report });
}
