import { expect, test } from 'vitest';
import { readLines, readTags } from '../../scripts/checks.ts';

const lines = readLines();
const tags = readTags();
const upTo = (count: number, prefix = '') => Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`);

test('test/checks.md has the checks 1 to 90 and the faults F1 to F22, in order', () => {
  expect(lines.map(({ number }) => number)).toEqual([...upTo(90), ...upTo(22, 'F')]);
});

test('at least one test holds each check that applies', () => {
  const held = new Set(tags.map(({ number }) => number));
  expect(lines.filter(({ number, exempt }) => held.has(number) === (exempt !== undefined))).toEqual([]);
});

test('each tag has known numbers and precedes a test', () => {
  const known = new Set(lines.map(({ number }) => number));
  expect(tags.filter(({ number, title }) => !known.has(number) || title === undefined)).toEqual([]);
});
