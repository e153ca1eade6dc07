import { expect, test } from 'vitest';
import { estimate } from '../../../server/accounts/credentials/passwords/policy/estimate.ts';

test.each([
  ['Password1!', 1],
  ['Sommer2024!', 2],
  ['Invierno2024', 2],
  ['Printemps2024', 2],
  ['Qwerty123!', 1],
])('%s is no harder to guess than %i of 4', (password, most) => {
  const { score, advice } = estimate({ password, words: [] });
  expect(score).toBeLessThanOrEqual(most);
  expect(advice.length).toBeGreaterThan(0);
});

test('a long random password has the highest score, and needs no advice', () => {
  expect(estimate({ password: 'vR8#kq2Zx!mW7$pL0@dN5^cH3', words: [] })).toEqual({ score: 4, advice: [] });
});

test('the words of the user make a password easy to guess', () => {
  const password = 'Zyxalorian-1';
  const { score } = estimate({ password, words: [] });
  expect(estimate({ password, words: ['Zyxalorian'] }).score).toBeLessThan(score);
});

test('the advice is a warning and one suggestion, in English', () => {
  const { advice } = estimate({ password: 'qwertyuiop', words: [] });
  expect(advice).toHaveLength(2);
  for (const sentence of advice) expect(sentence).toMatch(/^[A-Z][^.]+[.!]?/);
});
