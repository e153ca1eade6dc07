/** A call of any load. Times are performance.now(). */
export interface Timed {
  start: number;
  end: number;
  status: number | undefined;
}

/** When a fault came, and when the load was watched to its end. */
export interface Span {
  began: number;
  injected: number;
  over: number;
}

/** How long before and after a fault is measured. */
export const QUIET_MS = 5000;

/** A call that the service refused or nobody answered. */
export const isRefused = ({ status = 503 }: Timed): boolean => status === 503;

export interface Figures {
  calls: number;
  refused: number;
  /** The longest time without an answer other than a refusal. */
  gapMs: number;
  /** From the fault to the last refused call; 0 without one. */
  recoveryMs: number;
  /** 99 % of the answers took at most this long: before, during, and after the fault. */
  p99Ms: [before: number, during: number, after: number];
}

export function figuresOf(history: readonly Timed[], { began, injected, over }: Span): Figures {
  const endedIn = (from: number, to: number) => history.filter(({ end }) => end >= from && end < to);
  const calls = endedIn(began, over);
  const refusals = calls.filter(isRefused);
  const lastRefusal = Math.max(began, ...refusals.map(({ end }) => end));
  const recovered = Math.max(lastRefusal, injected, began + 1000);
  const answers = calls.filter((call) => !isRefused(call)).map(({ end }) => end);
  const instants = [began, ...answers.sort((a, b) => a - b), over];
  return {
    calls: calls.length,
    refused: refusals.length,
    gapMs: Math.max(...instants.slice(1).map((at, i) => at - (instants[i] ?? at))),
    recoveryMs: lastRefusal - began,
    p99Ms: [p99(endedIn(began - QUIET_MS, began)), p99(endedIn(began, recovered)), p99(endedIn(recovered, over))],
  };
}

function p99(calls: Timed[]): number {
  const times = calls
    .filter((call) => !isRefused(call))
    .map(({ start, end }) => end - start)
    .sort((a, b) => a - b);
  return times[Math.ceil(times.length * 0.99) - 1] ?? 0;
}
