import { expect, test } from 'vitest';
import { createStrength } from '../../../server/accounts/credentials/passwords/policy/strength.ts';
import { estimated, wordsAbout } from '../../../server/shared/password-words.ts';

const estimate = createStrength();
const scoreOf = async (password: string) => (await estimate({ password, words: [] }, '192.0.2.1')).score;

test.each([
  ['Constructor1!', 'Computer1!'],
  ['rotcurtsnoC1!', 'retupmoC1!'],
  ['Qwerty1!constructor', 'Qwerty1!computer'],
  ['__proto__', 'computer'],
  ['__PROTO__1A!', 'Computer1A!'],
])('%s, of a name that each object has, is no harder to guess than %s', async (named, common) => {
  expect(await scoreOf(named)).toBeLessThanOrEqual(await scoreOf(common));
});

test('other passwords are estimated as they are, up to 72 characters', () => {
  expect(estimated('Analytical-Engine-1843')).toBe('Analytical-Engine-1843');
  expect(estimated('a'.repeat(100))).toBe('a'.repeat(72));
});

test.each([
  ['Sommer2024!', 2],
  ['Schmetterling7!', 2],
  ['Invierno2024', 2],
  ['Printemps2024', 2],
])('%s, a word in a language of the pages with digits, has at most %i of 4', async (password, most) => {
  expect(await scoreOf(password)).toBeLessThanOrEqual(most);
});

test.each([
  ['of a password manager', 'vR8#kq2Zx!mW7$pL0@dN5^cH3&bJ9*tF6(gY1)sQ4-uE8_aP2=iO7+lK5~wX0?zT3<rB6>'],
  ['of substituted letters', 'p@$$w0rd4$$1!A'.repeat(6)],
  ['of dates', '1.1.19991/1/19992-2-2000A!a'.repeat(3)],
])('a long password %s is estimated with less than 0.7 s of CPU', async (_, password) => {
  const tries: number[] = [];
  for (let n = 0; n < 3; n++) {
    const before = process.cpuUsage();
    await scoreOf(password);
    const { user, system } = process.cpuUsage(before);
    tries.push((user + system) / 1000);
  }
  // The least: the CPU time of other files' threads in this process is in it.
  expect(Math.min(...tries)).toBeLessThan(700);
});

test('the words of a user are name, address and site, and their parts of three characters or more', () => {
  expect(wordsAbout('Ada King-Noel', 'al.byron@example.test', 'accounts.test')).toEqual([
    ...['Ada King-Noel', 'Ada', 'King', 'Noel'],
    ...['al.byron@example.test', 'byron', 'example', 'test'],
    ...['accounts.test', 'accounts'],
  ]);
});
