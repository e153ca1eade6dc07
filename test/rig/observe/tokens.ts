/** One use of a credential that an application or a program holds. Times are performance.now(). */
export interface Use {
  /**
   * `redeem` sends a code, `refresh` a refresh token: each works once. `verify`
   * is the signature of an ID token. `end` ends the grant or key.
   */
  action: 'redeem' | 'refresh' | 'introspect' | 'verify' | 'key' | 'end';
  /** The grant or key. */
  of: string;
  /** What was sent. */
  token: string;
  start: number;
  end: number;
  /** The HTTP status; undefined without an answer. */
  status: number | undefined;
  /** What the answer says of the credential; undefined if it says nothing, when the effect is unknown. */
  accepted: boolean | undefined;
}

/** A refresh whose answer was lost may be repeated for this long (docs/applications.md). */
export const REPEAT_MS = 10_000;

/** What contradicts the acknowledged uses, as sentences. */
export function tokenFindings(uses: readonly Use[]): { lost: string[]; survived: string[]; spentTwice: string[] } {
  const found = { lost: [] as string[], survived: [] as string[], spentTwice: [] as string[] };
  for (const [of, own] of Map.groupBy(uses, (use) => use.of)) {
    const spent = [...Map.groupBy(own.filter(isSingle), ({ token }) => token).values()];
    const ended = Math.min(...own.filter(isEnd).map(({ end }) => end), ...spent.flatMap(noticedRepetitions));
    const maybeEnded = Math.min(
      ...own.filter(({ action }) => action === 'end').map(({ start }) => start),
      ...spent.flatMap(repetitions).map(({ start }) => start),
    );
    for (const use of own.filter(({ action }) => action !== 'end')) {
      if (use.accepted && use.start > ended) found.survived.push(`${use.action} of ${of} worked after its end`);
      if (use.accepted === false && use.end < maybeEnded) found.lost.push(`${use.action} of ${of} was refused`);
    }
    for (const one of spent) {
      const [first, ...more] = one.filter(({ accepted }) => accepted).sort((a, b) => a.end - b.end);
      // Codes work once, however close the uses are.
      const isSecond = (use: Use) => use.action === 'redeem' || use.start > (first?.end ?? 0) + REPEAT_MS;
      if (more.some(isSecond))
        found.spentTwice.push(`${first?.action} of ${of}: one token worked ${more.length + 1} times`);
    }
  }
  return found;
}

export const isSpent = (use: Use): boolean => isSingle(use) && use.accepted === true;
const isSingle = ({ action }: Use) => action === 'redeem' || action === 'refresh';
export const isEnd = ({ action, accepted }: Use): boolean => action === 'end' && accepted === true;
const repeatableFor = ({ action }: Use) => (action === 'refresh' ? REPEAT_MS : 0);

/**
 * Uses of a token that another use may have spent before: they end the grant, also before the answer to the one that was
 * first, which is then refused too.
 */
const repetitions = (uses: Use[]): Use[] =>
  uses.filter((use) =>
    uses.some(
      (other) =>
        other !== use &&
        (other.accepted !== false || use.start < other.end) &&
        use.end > other.start + repeatableFor(use),
    ),
  );

/** When a repetition was refused: the grant had ended by then. */
const noticedRepetitions = (uses: Use[]): number[] => {
  const spentAt = Math.min(...uses.filter(({ accepted }) => accepted).map(({ end }) => end));
  return uses.filter((use) => use.accepted === false && use.start > spentAt + repeatableFor(use)).map(({ end }) => end);
};
