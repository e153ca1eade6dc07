/*
 * Node has no Unix datagram sockets: systemd's own program sends the message.
 */

import { execFile } from 'node:child_process';
import type { Log } from '../telemetry/log.ts';

/**
 * Sends systemd its watchdog signal twice per WatchdogSec (sd_watchdog_enabled(3)); without it systemd restarts the
 * service. Does nothing unless systemd started this very process with a watchdog.
 */
export function keepWatchdogQuiet(log: Pick<Log, 'warn'>, { env, pid } = process): void {
  const periodMs = Number(env['WATCHDOG_USEC']) / 1000;
  const isMeant = env['WATCHDOG_PID'] === undefined || env['WATCHDOG_PID'] === String(pid);
  if (!env['NOTIFY_SOCKET'] || !(periodMs > 0) || !isMeant) return;
  let isFailing = false;
  const notify = () =>
    execFile('systemd-notify', ['WATCHDOG=1'], { timeout: periodMs }, (err) => {
      if (err && !isFailing)
        log.warn({ err }, 'the watchdog signal does not reach systemd, which will restart the service');
      isFailing = err !== null;
    });
  notify();
  setInterval(notify, periodMs / 2).unref();
}
