interface Waiting {
  bytes: number;
  begin(): void;
}

/**
 * Runs tasks in order of arrival: at most `atOnce`, with at most `bytes` of memory in total. A task that needs more
 * runs alone.
 */
export function createMemoryQueue({ atOnce, bytes: most }: { atOnce: number; bytes: number }) {
  const waiting: Waiting[] = [];
  let running = 0;
  let used = 0;

  const hasRoom = ({ bytes }: Waiting) => running === 0 || (running < atOnce && used + bytes <= most);
  const beginNext = () => {
    for (let [next] = waiting; next && hasRoom(next); [next] = waiting) {
      waiting.shift();
      running += 1;
      used += next.bytes;
      next.begin();
    }
  };

  return {
    get running(): number {
      return running;
    },
    get waiting(): number {
      return waiting.length;
    },
    async run<Result>(bytes: number, work: () => Promise<Result>): Promise<Result> {
      const turn = Promise.withResolvers<void>();
      waiting.push({ bytes, begin: turn.resolve });
      beginNext();
      await turn.promise;
      try {
        return await work();
      } finally {
        running -= 1;
        used -= bytes;
        beginNext();
      }
    },
  };
}
