import { expect, test, vi } from 'vitest';
import { createProgress } from '../../../server/cli/images/progress.ts';

function output(terminal: { isTTY: boolean; columns?: number }) {
  const written: string[] = [];
  return { ...terminal, write: (text: string) => void written.push(text), written };
}

const ERASE = '\r\x1b[K';

test('a terminal has one line with a bar, which fits its width', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const terminal = output({ isTTY: true, columns: 30 });
  const progress = createProgress(terminal, 4);
  progress.show(3);
  expect(terminal.written).toEqual([`${ERASE}[${'-'.repeat(13)}] 0 of 4 images`]);
  vi.advanceTimersByTime(1000);
  expect(progress.isDue()).toBe(true);
  progress.show(1);
  expect(terminal.written.at(-1)).toBe(`${ERASE}[${'#'.repeat(9)}${'-'.repeat(4)}] 3 of 4 images`);
  progress.note('a.webp: failed');
  expect(terminal.written.at(-1)).toBe(`${ERASE}a.webp: failed\n`);
  progress.end(0);
  expect(terminal.written.slice(-2)).toEqual([`${ERASE}[${'#'.repeat(13)}] 4 of 4 images`, '\n']);
  for (const line of terminal.written.filter((text) => text.includes('[')))
    expect(line.length).toBeLessThan(30 + ERASE.length);
  vi.useRealTimers();
});

test('a file or a pipe gets a line every ten seconds, without control characters', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const file = output({ isTTY: false });
  const progress = createProgress(file, 4);
  vi.advanceTimersByTime(9_000);
  expect(progress.isDue()).toBe(false);
  progress.show(3);
  vi.advanceTimersByTime(1_000);
  // One was uploaded meanwhile.
  progress.show(5);
  progress.note('a.webp: failed');
  progress.end(0);
  expect(file.written.join('')).toBe('0 of 4 images\n0 of 5 images\na.webp: failed\n5 of 5 images\n');
  vi.useRealTimers();
});
