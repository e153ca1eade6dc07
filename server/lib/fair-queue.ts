/** Runs at most `atOnce` tasks concurrently. Waiting tasks of users run round-robin, however many a user has. */
export function createFairQueue(atOnce: number) {
  /** By user, in round-robin order. */
  const waiting = new Map<string, (() => void)[]>();
  let running = 0;
  let size = 0;

  const startNext = () => {
    const [turn] = waiting;
    if (!turn || running === atOnce) return;
    const [user, [start, ...rest]] = turn;
    waiting.delete(user);
    if (rest.length > 0) waiting.set(user, rest);
    running++;
    size--;
    start?.();
  };

  return {
    /** The number of waiting tasks: all, or a user's. */
    waiting: (user?: string): number => (user === undefined ? size : (waiting.get(user)?.length ?? 0)),

    /** True if no task runs or waits. */
    isIdle: (): boolean => running === 0 && size === 0,

    async run<T>(user: string, task: () => Promise<T>): Promise<T> {
      await new Promise<void>((start) => {
        waiting.set(user, [...(waiting.get(user) ?? []), start]);
        size++;
        startNext();
      });
      try {
        return await task();
      } finally {
        running--;
        startNext();
      }
    },
  };
}
