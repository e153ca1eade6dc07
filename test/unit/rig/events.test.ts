import { expect, test } from 'vitest';
import { eventViolations, type ReadEvent } from '../../rig/observe/events.ts';
import type { Action, Entry } from '../../rig/observe/history.ts';

/** The checker of the stream finds each fault. */

const call = (action: Action, status: number | undefined): Entry => ({ action, user: 'ada', start: 0, end: 1, status });
const event = (number: number, type: string): ReadEvent => ({
  id: `event-${number}`,
  number,
  type,
  data: { userId: 'user_ada' },
});
const history = [call('register', 201), call('verify', 200), call('change', 200), call('change', undefined)];
const read = [event(1, 'user.created'), event(4, 'user.verified'), event(5, 'user.updated')];
const violations = (events: ReadEvent[]) => eventViolations(history, events, new Map([['ada', 'user_ada']]));

test('each acknowledged call has its event, a call without an answer may have one', () => {
  expect(violations(read)).toEqual([]);
  expect(violations([...read, event(6, 'user.updated')])).toEqual([]);
});

test('a lost event is found', () =>
  expect(violations(read.slice(0, 2))).toEqual(['lost: 1 user.updated of ada, 0 in the stream']));

test('an event that nothing caused is found', () => {
  const updates = [6, 7].map((number) => event(number, 'user.updated'));
  expect(violations([...read, ...updates])).toEqual(['too many: 3 user.updated of ada, at most 2 calls']);
});

test('an event that comes twice, and another order, are found', () => {
  const [first, ...rest] = read as [ReadEvent, ...ReadEvent[]];
  expect(violations([first, first, ...rest])).toEqual([
    'out of order: 1 after 1',
    'twice: 1',
    'too many: 2 user.created of ada, at most 1 calls',
  ]);
  expect(violations([...rest, first])).toEqual(['out of order: 1 after 5']);
});
