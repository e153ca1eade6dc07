import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Ratio, Result } from './case.ts';
import { processor, table } from './report.ts';

const page = join(import.meta.dirname, 'RESULTS.md');
/** `Committed`, from the last full run. */
const committed = join(import.meta.dirname, 'results.json');
/** A ratio that is worse by more than this part is a regression. */
const TOLERANCE = 0.15;

/** The ratios by id, and the processor: ratios depend on it. */
interface Committed {
  processor: string;
  ratios: Record<string, number>;
}

export interface Regression {
  name: string;
  value: number;
  former: number;
}

/**
 * The ratios that are worse than the committed ones of the same processor. Only stable ratios in the file are compared:
 * to accept a deliberate change, delete its entry.
 */
export function regressions(results: Result[]): Regression[] {
  const before = readCommitted()?.ratios ?? {};
  return stableRatios(results).flatMap(({ name, value, goal }) => {
    const former = before[name];
    if (former === undefined) return [];
    const loss = goal && 'atLeast' in goal ? former / value : value / former;
    return loss > 1 + TOLERANCE ? [{ name, value, former }] : [];
  });
}

/** Undefined, with a message, if there are no results of this processor. */
const readCommitted = (): Committed | undefined => {
  if (!existsSync(committed)) return undefined;
  const results: Committed = JSON.parse(readFileSync(committed, 'utf8'));
  if (results.processor === processor) return results;
  console.log(`Not compared with results.json, which is of ${results.processor}`);
  return undefined;
};

/** Replaces the results of the last full run. */
export function writeResults(results: Result[], machine: string): void {
  const ratios = Object.fromEntries(stableRatios(results).map(({ name, value }) => [name, Number(value.toFixed(3))]));
  writeFileSync(committed, `${JSON.stringify({ processor, ratios } satisfies Committed, null, 2)}\n`);
  writeFileSync(
    page,
    `# Results of \`npm run bench\`

${machine} · ${new Date().toISOString().slice(0, 10)}

Medians of the rounds, and of the ratios within a round. The limit is the server in the line below, or the value itself where it
has a unit. How it is measured: [README.md](README.md#method).

${table(results)}
`,
  );
}

const stableRatios = (results: Result[]): (Ratio & { name: string })[] =>
  results
    .flatMap(({ what, toLimit, toPeer }) => [
      { ...toLimit, name: `${what}, to the limit` },
      { ...toPeer, name: `${what}, to the peer` },
    ])
    .filter((ratio): ratio is Ratio & { name: string } => ratio.isStable === true);
