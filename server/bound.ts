interface Bound {
  /** How many of a key. */
  most: number;
  withinMs: number;
  /** Of how many keys: no further one is remembered, nor answered with true. */
  mostKeys?: number;
  now?: () => number;
}

/** Answers whether fewer than `most` of a key were asked for in this span of time, of which each has a fresh count. */
export function createBound({ most, withinMs, mostKeys, now = Date.now }: Bound): (key: string) => boolean {
  let counts = new Map<string, number>();
  let span = 0;
  return (key) => {
    const current = Math.floor(now() / withinMs);
    if (current !== span) {
      span = current;
      counts = new Map();
    }
    const known = counts.get(key);
    if (known === undefined && counts.size === mostKeys) return false;
    const count = (known ?? 0) + 1;
    counts.set(key, count);
    return count <= most;
  };
}
