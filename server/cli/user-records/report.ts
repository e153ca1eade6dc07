import type { Writable } from 'node:stream';
import type { ImportOutcome } from '../../accounts/data/index.ts';

/**
 * The outcome of a line. A refused one must be corrected, a skipped one not. `note` says which part of an imported one
 * is ignored.
 */
export type LineOutcome =
  | { kind: 'imported'; note?: string }
  | { kind: 'skipped'; reason: string }
  | { kind: 'refused'; reason: string };

export const outcomeOf: Record<ImportOutcome, LineOutcome> = {
  imported: { kind: 'imported' },
  exists: { kind: 'skipped', reason: 'a user already has this address' },
  reserved: { kind: 'refused', reason: 'a user had this address before an email change that can still be undone' },
  'field-taken': { kind: 'refused', reason: 'another user has the value of a unique field' },
  'identity-linked': { kind: 'refused', reason: 'an identity is linked to another user' },
};

interface Range {
  first: number;
  last: number;
  outcome: LineOutcome;
}

/**
 * Prints outcomes while lines are read, consecutive equal ones as a range, and totals at the end: only numbers are kept
 * in memory.
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

    /** `imported` names the outcome of the lines that were neither skipped nor refused. */
    end({ imported }: { imported: string }): void {
      close();
      output.write(`${counts.imported} ${imported}, ${counts.skipped} skipped, ${counts.refused} refused\n`);
    },
  };
}

export type Report = ReturnType<typeof createReport>;
