import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export const isSample = process.env['MUTATION_SAMPLE'] !== undefined;

/**
 * Whether a mutant is in the sample MUTATION_SAMPLE=SHARE,SEED: a random share such as 0.05, a part such as 0.25-0.5,
 * or the survivors in a file of results. By default all are. Stryker gives the same ids to the same code.
 */
export function isSampled(id: string, sample = process.env['MUTATION_SAMPLE']): boolean {
  if (sample === undefined) return true;
  const [share = '', seed] = sample.split(',');
  if (share.endsWith('.jsonl')) return survivorsIn(share).has(id);
  const [to, from = 0] = share.split('-').reverse().map(Number);
  const position = hash('sha256', `${seed} ${id}`, 'buffer').readUInt32BE() / 2 ** 32;
  return from <= position && position < Number(to);
}

let survivors: Set<string> | undefined;

function survivorsIn(file: string): Set<string> {
  const results = () =>
    readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  survivors ??= new Set(results().flatMap(({ id, status }) => (status === 'survived' ? [id as string] : [])));
  return survivors;
}
