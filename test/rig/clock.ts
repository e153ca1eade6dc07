/**
 * The environment of a service whose clock is so many milliseconds slow, as `Date.now()` answers it: what it signs or opens
 * is that old to another service on the same parts.
 */
export const slowClock = (ms: number): { NODE_OPTIONS: string } => {
  const script = `const now = Date.now; Date.now = () => now() - ${ms};`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` };
};
