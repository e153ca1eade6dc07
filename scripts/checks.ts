import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * `npm run checks`: each line of test/checks.md with the tests that hold it.
 * A test holds a line by a comment above it: `// checks: 13, F4`.
 */
const root = join(import.meta.dirname, '..');
const LINE = /^- (F?\d+)(?: \((not applicable yet: [^)]+)\))?: (.+)$/gm;
const TAG = /^ *\/\/ checks: (.+)$/gm;
/** From a tag on: the first title of a test or of a group, even behind the table of an `each`. */
const TITLE = /(?:^ *(?:test|describe)|\))\(\s*(['"`])((?:\\.|(?!\1)[^\\])+)\1,\s*(?:async\b|\(|\w+\))/m;

interface Line {
  number: string;
  text: string;
  /** Why no test holds it. */
  exempt: string | undefined;
}

interface Tag {
  number: string;
  file: string;
  title: string | undefined;
}

export function readLines(): Line[] {
  const matches = readFileSync(join(root, 'test/checks.md'), 'utf8').matchAll(LINE);
  return [...matches].map(([, number = '', exempt, text = '']) => ({ number, text, exempt }));
}

export function readTags(): Tag[] {
  const files = globSync('test/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] }).sort();
  return files.flatMap((file) => {
    const source = readFileSync(join(root, file), 'utf8');
    return [...source.matchAll(TAG)].flatMap(({ 1: numbers = '', index }) => {
      const title = TITLE.exec(source.slice(index))?.[2];
      return numbers.split(', ').map((number) => ({ number, file, title }));
    });
  });
}

if (import.meta.main) {
  const tags = readTags();
  for (const { number, text, exempt } of readLines()) {
    const tests = tags.filter((tag) => tag.number === number).map(({ file, title }) => `     ${file}: ${title}`);
    process.stdout.write([`${number.padEnd(4)} ${text}`, ...(exempt ? [`     ${exempt}`] : tests), ''].join('\n'));
  }
}
