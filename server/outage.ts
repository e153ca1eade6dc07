interface Reports {
  began(error: unknown): void;
  ended?(): void;
}

/** Reports an outage when it begins and when it ends: once each, however often something fails in between. */
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
