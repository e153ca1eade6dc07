interface Counts {
  withinMs: number;
  /** The maximum number of keys per window; further ones are not counted. */
  mostKeys?: number;
  now?: () => number;
}

/** Counts calls per key in fixed windows. Returns undefined for a key beyond `mostKeys`. */
export function createCounts({ withinMs, mostKeys, now = Date.now }: Counts): (key: string) => number | undefined {
  let counts = new Map<string, number>();
  let span = 0;
  return (key) => {
    const current = Math.floor(now() / withinMs);
    if (current !== span) {
      span = current;
      counts = new Map();
    }
    const known = counts.get(key);
    if (known === undefined && counts.size === mostKeys) return undefined;
    const count = (known ?? 0) + 1;
    counts.set(key, count);
    return count;
  };
}

interface Bound extends Counts {
  /** The maximum number of calls per key. */
  most: number;
}

/** True for the first `most` calls per key in each fixed window; false for a key beyond `mostKeys`. */
export function createBound({ most, ...counts }: Bound): (key: string) => boolean {
  const countOf = createCounts(counts);
  return (key) => (countOf(key) ?? Number.POSITIVE_INFINITY) <= most;
}
