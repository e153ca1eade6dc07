import type { Config } from '../../config/index.ts';

/** The result of a check. All but `ok` include a remedy. */
export type Finding = { level: 'ok'; text: string } | { level: 'warning' | 'problem'; text: string; remedy: string };

/** Checks one part. Findings are kept if it later fails or times out. */
export type Check = (config: Config) => AsyncIterable<Finding>;

export const ok = (text: string): Finding => ({ level: 'ok', text });
export const warning = (text: string, remedy: string): Finding => ({ level: 'warning', text, remedy });
export const problem = (text: string, remedy: string): Finding => ({ level: 'problem', text, remedy });

/** Errors of TLS, and of Node's verification of certificates. */
const tlsError = /CERT|TLS|SSL|SIGNATURE|ISSUER/;

/** True if an error message is about a certificate or encryption. */
export const isAboutTls = (sentence: string): boolean => tlsError.test(sentence);

/** More than a synchronized clock is ever off. */
const CLOCK_WARNING_MS = 5000;

/** A clock that was read between our times `asked` and `answered`, in ms since 1970. */
export interface ClockReading {
  theirs: number;
  asked: number;
  answered: number;
}

/** Compares a clock with that of this machine. The service fails with differences above `tolerance` (ms). */
export function clockFinding({ theirs, asked, answered }: ClockReading, tolerance = Number.POSITIVE_INFINITY): Finding {
  const ahead = Math.max(theirs - answered, 0) - Math.max(asked - theirs, 0);
  const difference = `${(Math.abs(ahead) / 1000).toFixed(1)} s ${ahead > 0 ? 'ahead of' : 'behind'} this machine's`;
  const remedy = 'synchronize both machines with NTP (Debian: chrony)';
  if (Math.abs(ahead) > tolerance) return problem(`its clock is ${difference}, which is more than it may be`, remedy);
  if (Math.abs(ahead) > CLOCK_WARNING_MS) return warning(`its clock is ${difference}`, remedy);
  return ok('its clock agrees with this machine’s');
}

/** The minimum difference of two clocks in ms: each was read at some time between `asked` and `answered`. */
export function leastDifference(one: ClockReading, other: ClockReading): number {
  const ahead = (clock: ClockReading) => ({ least: clock.theirs - clock.answered, most: clock.theirs - clock.asked });
  const [a, b] = [ahead(one), ahead(other)];
  return Math.max(a.least - b.most, b.least - a.most, 0);
}

/** The clock of an HTTP server by its Date header, truncated to seconds; undefined without one. */
export function clockOf(response: Response, asked: number): ClockReading | undefined {
  const date = Date.parse(response.headers.get('date') ?? '');
  return Number.isNaN(date) ? undefined : { theirs: date, asked: asked - 1000, answered: Date.now() };
}
