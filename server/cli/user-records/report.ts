import type { Writable } from 'node:stream';
import type { ImportOutcome } from '../../accounts/user-import.ts';

/** What becomes of a line. A refused one has to be corrected, a skipped one has not. `note` says what of an imported one is left out. */
export type LineOutcome =
  | { kind: 'imported'; note?: string }
  | { kind: 'skipped'; reason: string }
  | { kind: 'refused'; reason: string };

export const outcomeOf: Record<ImportOutcome, LineOutcome> = {
  imported: { kind: 'imported' },
  exists: { kind: 'skipped', reason: 'a user has this address already' },
  reserved: { kind: 'refused', reason: 'a user had this address until lately, and can take it back for some days' },
  'identity-linked': { kind: 'refused', reason: 'an identity is linked to another user' },
};

interface Range {
  first: number;
  last: number;
  outcome: LineOutcome;
}

/**
 * Writes what becomes of the lines while they are read, consecutive ones of one outcome as a range, and sums at the end: nothing is
 * kept but numbers.
 */
export function createReport(output: Writable) {
  const counts = { imported: 0, skipped: 0, refused: 0 };
  let open: Range | undefined;

  const close = () => {
    if (!open) return;
    const { first, last, outcome } = open;
    const said = outcome.kind === 'imported' ? outcome.note : `${outcome.kind}: ${outcome.reason}`;
    if (said) output.write(`${first === last ? `line ${first}` : `lines ${first} to ${last}`}: ${said}\n`);
    open = undefined;
  };

  return {
    add(line: number, outcome: LineOutcome): void {
      counts[outcome.kind] += 1;
      const isSame = open && JSON.stringify(open.outcome) === JSON.stringify(outcome);
      if (open && isSame) open.last = line;
      else {
        close();
        open = { first: line, last: line, outcome };
      }
    },

    get hasRefused(): boolean {
      return counts.refused > 0;
    },

    /** `imported` says what became of those that were neither skipped nor refused. */
    end({ imported }: { imported: string }): void {
      close();
      output.write(`${counts.imported} ${imported}, ${counts.skipped} skipped, ${counts.refused} refused\n`);
    },
  };
}

export type Report = ReturnType<typeof createReport>;
