import { expect, test } from 'vitest';
import { tokenFindings, type Use } from '../../rig/observe/tokens.ts';

/** The checker of codes, refreshes, introspection and access keys finds each fault, and only faults. */

const of = 'grant 1';
const use = (start: number, action: Use['action'], token: string, answer: boolean | 'none' = true): Use => {
  const accepted = answer === 'none' ? undefined : answer;
  return { action, of, token, start, end: start + 5, status: accepted ? 200 : undefined, accepted };
};
const none = { lost: [], survived: [], spentTwice: [] };

/** A code, two refreshes, an introspection, and the end. */
const uses = [
  use(10, 'redeem', 'code'),
  use(20, 'refresh', 'one'),
  use(30, 'refresh', 'two', 'none'),
  use(40, 'refresh', 'two'),
  use(50, 'introspect', 'three'),
  use(60, 'end', 'three'),
  use(70, 'introspect', 'three', false),
  use(80, 'refresh', 'three', false),
];
const before = uses.slice(0, 5);

test('a correct history has no finding', () => expect(tokenFindings(uses)).toEqual(none));

test('a use beside the end may be accepted or refused', () => {
  for (const accepted of [true, false])
    expect(tokenFindings([...uses, use(58, 'introspect', 'three', accepted)])).toEqual(none);
});

test('a grant that nothing has ended, and is refused, is found', () => {
  const found = ['introspect of grant 1 was refused'];
  expect(tokenFindings([...before, use(55, 'introspect', 'three', false)])).toEqual({ ...none, lost: found });
  expect(tokenFindings([...uses, use(51, 'introspect', 'three', false)])).toEqual({ ...none, lost: found });
});

test.each(['refresh', 'introspect', 'key'] as const)('a %s after the acknowledged end is found', (action) => {
  const found = [`${action} of grant 1 worked after its end`];
  expect(tokenFindings([...uses, use(90, action, 'three')])).toEqual({ ...none, survived: found });
});

test('an end without an answer may or may not have happened', () => {
  const unknown = [...before, use(60, 'end', 'three', 'none')];
  for (const accepted of [true, false])
    expect(tokenFindings([...unknown, use(70, 'introspect', 'three', accepted)])).toEqual(none);
});

test('a code that works twice is found, and its second use ends the grant', () => {
  expect(tokenFindings([...before, use(11, 'redeem', 'code')]).spentTwice).toEqual([
    'redeem of grant 1: one token worked 2 times',
  ]);
  const refused = [use(10, 'redeem', 'code'), use(16, 'redeem', 'code', false)];
  expect(tokenFindings([...refused, use(30, 'refresh', 'one', false)])).toEqual(none);
  expect(tokenFindings([...refused, use(30, 'refresh', 'one')])).toEqual({
    ...none,
    survived: ['refresh of grant 1 worked after its end'],
  });
});

test('uses of one code at the same time may all be refused; one after the other they are found', () => {
  const refused = (start: number) => use(start, 'redeem', 'code', false);
  expect(tokenFindings([refused(10), refused(12), refused(14)])).toEqual(none);
  expect(tokenFindings([refused(10), refused(20)]).lost).toHaveLength(2);
});

test('a refresh may be repeated for ten seconds; later, a second success is found', () => {
  expect(tokenFindings([...before, use(9_000, 'refresh', 'two')])).toEqual(none);
  expect(tokenFindings([...before, use(11_000, 'refresh', 'two')]).spentTwice).toEqual([
    'refresh of grant 1: one token worked 2 times',
  ]);
});

test('a late repetition that is refused ends the grant', () => {
  const repeated = [...before, use(11_000, 'refresh', 'one', false)];
  expect(tokenFindings([...repeated, use(11_010, 'refresh', 'three', false)])).toEqual(none);
  expect(tokenFindings([...repeated, use(11_010, 'refresh', 'three')])).toEqual({
    ...none,
    survived: ['refresh of grant 1 worked after its end'],
  });
});

test('a refused use explains no later refusal', () => {
  const refused = [55, 20_000].map((start) => use(start, 'refresh', 'three', false));
  expect(tokenFindings([...before, ...refused]).lost).toHaveLength(2);
});
