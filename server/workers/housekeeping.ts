import { createOutage } from '../lib/outage.ts';
import type { Log } from '../telemetry/log.ts';

const SWEEP_EVERY_MS = 10 * 60_000;

interface Housekeeping {
  /** Each is idempotent: most delete rows that are no longer needed. */
  sweeps: (() => Promise<void>)[];
  log: Log;
}

/**
 * Runs the sweeps one after the other in each process, about every ten minutes, and no two at a time. One that fails
 * stops no other.
 */
export function createHousekeeping({ sweeps, log }: Housekeeping) {
  const outage = createOutage({
    began: (error) => log.warn({ job: 'housekeeping', err: error }, 'housekeeping failed: it is retried'),
  });
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isStopped = false;

  const sweepAll = async () => {
    const failures: unknown[] = [];
    for (const sweep of sweeps) if (!isStopped) await sweep().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures);
  };

  return {
    start(): void {
      const run = () => {
        running ??= sweepAll()
          .then(outage.succeeded, outage.failed)
          .finally(() => {
            running = undefined;
          });
      };
      // Random, so that the processes do not all sweep together.
      timer = setInterval(run, SWEEP_EVERY_MS * (0.5 + Math.random())).unref();
    },

    async stop(): Promise<void> {
      clearInterval(timer);
      isStopped = true;
      await running;
    },
  };
}
