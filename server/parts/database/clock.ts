/** In this time two clocks drift apart by a few milliseconds at most. */
const KNOWN_FOR_MS = 60_000;

/**
 * The database's clock as this process knows it, in milliseconds since 1970: never ahead of it, unless that steps back. It is asked for in the
 * background once it is used; undefined until that is answered.
 */
export function createClock(ask: () => Promise<number>): () => number | undefined {
  let known: { offset: number; since: number } | undefined;
  let asking = false;

  const learn = async () => {
    asking = true;
    try {
      // The answer has been on its way: by now the database's clock shows a little more.
      known = { offset: (await ask()) - performance.now(), since: performance.now() };
    } catch {
      // Statements report the outage; the next use asks again.
    } finally {
      asking = false;
    }
  };

  return () => {
    if (known && performance.now() - known.since > KNOWN_FOR_MS) known = undefined;
    if (!known && !asking) void learn();
    return known && known.offset + performance.now();
  };
}
