import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const START = '<!-- generated -->';
const END = '<!-- end of the generated part -->';

/** A page of docs/ with one generated part: as committed, and as it must be. */
export function generatedPage(name: string, part: string) {
  const path = join(root, 'docs', name);
  const committed = readFileSync(path, 'utf8');
  const [start, end] = [committed.indexOf(START), committed.indexOf(END)];
  if (start < 0 || end < start) throw new Error(`docs/${name} has no generated part`);
  const page = `${committed.slice(0, start + START.length)}\n\n${part}\n\n${committed.slice(end)}`;
  return { committed, page, write: () => writeFileSync(path, page) };
}

const row = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
export const table = (head: string[], rows: string[][]) =>
  [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n');
