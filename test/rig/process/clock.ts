import { join } from 'node:path';

const script = join(import.meta.dirname, 'skewed-clock.ts');

/**
 * The environment of a service whose clock is this many milliseconds slow: what it signs or opens is that old for
 * another service on the same parts.
 */
export const slowClock = (ms: number) => ({ NODE_OPTIONS: `--import=${script}`, CLOCK_OFFSET_MS: String(-ms) });
