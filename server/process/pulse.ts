/** The interval at which a process gives a sign of life to the first one, which checks as often. */
export const SIGN_MS = 2000;
/** Ten seconds, as WatchdogSec in docs/deploy/accounts@.service: nothing may block an event loop for so long. */
const MAX_MISSED = 5;

/**
 * Tells whether a process that has given signs of life hangs. It counts checks, not time: the first process makes none
 * while it is frozen or the machine sleeps, and one afterwards.
 */
export function createPulse() {
  let missed: number | undefined;
  return {
    sign() {
      missed = 0;
    },
    /** Call every SIGN_MS. False before the first sign: a start on a busy machine may take longer. */
    isLost: (): boolean => missed !== undefined && ++missed > MAX_MISSED,
  };
}
