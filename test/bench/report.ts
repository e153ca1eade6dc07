import { arch, availableParallelism, cpus } from 'node:os';
import type { Figures, Ratio, Result } from './case.ts';

/** The environment of the measurement. */
export const processor = `${cpus()[0]?.model ?? arch()}, ${availableParallelism()} cores`;

export const describeMachine = (databaseVersion: string): string =>
  `${processor} · Node ${process.version} · ${databaseVersion}`;

const HEAD = ['', 'req/s', 'p50', 'p99', 'CPU/req', 'to the limit', 'goal', '', 'to the peer', 'goal', ''];

/** A Markdown table: one line per result with its goals, and below it the lines it is compared with. */
export function table(results: Result[]): string {
  const rows = results.flatMap(({ what, ours, others = {}, toLimit, toPeer }) => [
    [what, ...cells(ours), ...verdict(toLimit), ...verdict(toPeer)],
    ...Object.entries(others).map(([name, each]) => [`· ${name}`, ...cells(each), '', '', '', '', '', '']),
  ]);
  const widths = HEAD.map((head, column) => Math.max(3, head.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: string[]) =>
    `| ${row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`;
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [line(HEAD), line(rule), ...rows.map(line)].join('\n');
}

const cells = ({ perSecond, p50, p99, cpu, other }: Figures): string[] =>
  other === undefined
    ? [perSecond?.toFixed(perSecond < 100 ? 1 : 0) ?? '', ms(p50, 1), ms(p99, 1), ms(cpu, 3)]
    : [other, ms(p50, 1), ms(p99, 1), ms(cpu, 3)];

const ms = (value: number | undefined, digits: number): string =>
  value === undefined ? '' : `${value.toFixed(digits)} ms`;

function verdict(ratio: Ratio | undefined): string[] {
  if (!ratio) return ['', '', ''];
  const { value, unit, goal } = ratio;
  const text = unit ? `${value.toFixed(0)} ${unit}` : value.toFixed(2);
  if (!goal) return [text, '', ''];
  const isMet = 'atMost' in goal ? value <= goal.atMost : value >= goal.atLeast;
  const bound = 'atMost' in goal ? `≤ ${goal.atMost}` : `≥ ${goal.atLeast}`;
  return [text, unit ? `${bound} ${unit}` : bound, isMet ? 'ok' : 'missed'];
}
