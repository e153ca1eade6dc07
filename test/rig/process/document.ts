import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './service.ts';

/** The code blocks of one language under a heading of a Markdown file, unindented. Throws if there is no block. */
export function codeBlocks(file: string, heading: string, language = 'sh'): string[] {
  let current = '';
  let open: { indentation: string; language: string; lines: string[] } | undefined;
  const blocks: string[] = [];
  for (const line of readFileSync(join(root, file), 'utf8').split('\n')) {
    const [, indentation = '', info] = /^( *)```(.*)$/.exec(line) ?? [];
    if (open && info === '') {
      if (current === heading && open.language === language) blocks.push(`${open.lines.join('\n')}\n`);
      open = undefined;
    } else if (open) open.lines.push(line.slice(open.indentation.length));
    else if (info !== undefined) open = { indentation, language: info, lines: [] };
    else if (/^#+ /.test(line)) current = line.replace(/^#+ /, '');
  }
  if (blocks.length === 0) throw new Error(`${file} has no ${language} under “${heading}”`);
  return blocks;
}

/** A text with replaced values; each must occur. Replacements are not replaced again. */
export function replaced(text: string, values: Record<string, string>): string {
  for (const value of Object.keys(values)) expectIn(text, value);
  return substituted(text, values);
}

export function expectIn(text: string, value: string): void {
  if (!text.includes(value)) throw new Error(`${value} is not in ${text}`);
}

/** A text with replaced values, if they occur. */
export function substituted(text: string, values: Record<string, string>): string {
  const longestFirst = Object.keys(values).sort((one, other) => other.length - one.length);
  const pattern = new RegExp(longestFirst.map(escaped).join('|') || '(?!)', 'g');
  return text.replace(pattern, (value) => values[value] ?? value);
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
