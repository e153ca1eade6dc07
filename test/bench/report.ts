import { arch, availableParallelism, cpus } from 'node:os';
import type { Result } from './case.ts';

/** What the numbers were measured on. */
export const machine = (databaseVersion: string): string =>
  `${cpus()[0]?.model ?? arch()}, ${availableParallelism()} cores · Node ${process.version} · ${databaseVersion}`;

/** A table for people: one line a result, its goal beside it. */
export function table(results: Result[]): string {
  const lines = [
    ['', 'ours', 'baseline', 'ratio', 'goal', ''],
    ...results.map((result) => [
      result.what,
      result.ours,
      result.baseline,
      result.unit ? `${result.value.toFixed(2)} ${result.unit}` : result.value.toFixed(2),
      ...verdict(result),
    ]),
  ];
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  const align = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  return lines.map((line) => line.map(align).join('  ').trimEnd()).join('\n');
}

function verdict({ value, goal }: Result): [goal: string, met: string] {
  if (!goal) return ['–', ''];
  if ('atMost' in goal) return [`≤ ${goal.atMost}`, value <= goal.atMost ? 'ok' : 'missed'];
  return [`≥ ${goal.atLeast}`, value >= goal.atLeast ? 'ok' : 'missed'];
}
