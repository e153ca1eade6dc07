interface Reports {
  began(error: unknown): void;
  ended?(): void;
}

/** Reports an outage once when it begins and once when it ends, however often calls fail in between. */
export function createOutage({ began, ended }: Reports) {
  let isOngoing = false;
  return {
    failed(error: unknown): void {
      if (!isOngoing) began(error);
      isOngoing = true;
    },
    succeeded(): void {
      if (isOngoing) ended?.();
      isOngoing = false;
    },
  };
}

const REPORT_EVERY_MS = 60_000;

/**
 * Returns true if a message should be logged: at its first occurrence, then once a minute. Needs a small set of keys.
 */
export function createReportLimit(): (key: string) => boolean {
  const reported = new Map<string, number>();
  return (key) => {
    const isDue = performance.now() - (reported.get(key) ?? Number.NEGATIVE_INFINITY) >= REPORT_EVERY_MS;
    if (isDue) reported.set(key, performance.now());
    return isDue;
  };
}
