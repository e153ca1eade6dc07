import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  FIRST_CHECK_MS,
  isAddressValid,
  isLastCheck,
  msUntilNextCheck,
  msUntilNextLook,
} from '../../../server/uploads/schedule.ts';

type Upload = Parameters<typeof isLastCheck>[0];

const MINUTE = 60_000;
const upload = (purpose: Upload['purpose'], expiredForMs: number, state: Upload['state'] = 'expected') =>
  ({ purpose, state, expiredForMs, multipartId: null }) as Upload;

describe('an object at a presigned URL', () => {
  test.each([
    [-5 * MINUTE, 10 * MINUTE, false, true],
    [-1, 5 * MINUTE + 1, false, true],
    [0, 5 * MINUTE, false, false],
    [5 * MINUTE - 1, 1, false, false],
    [5 * MINUTE, 55 * MINUTE, false, false],
    [60 * MINUTE - 1, 1, false, false],
    [60 * MINUTE, 0, true, false],
    [61 * MINUTE, -MINUTE, true, false],
  ])('%i ms after its URL has expired', (expiredForMs, untilNext, isLast, isValid) => {
    const direct = upload('direct', expiredForMs);
    expect(msUntilNextCheck(direct)).toBe(untilNext);
    expect(isLastCheck(direct)).toBe(isLast);
    expect(isAddressValid(direct)).toBe(isValid);
  });

  test('is checked for the last time then, whatever its state', () => {
    for (const state of ['kept', 'replaced'] as const) expect(isLastCheck(upload('direct', 0, state))).toBe(false);
  });

  test.each([
    ['expected', 5 * MINUTE, (24 + 1) * 60 * MINUTE - 5 * MINUTE, false],
    ['expected', 25 * 60 * MINUTE - 1, 1, false],
    ['expected', 25 * 60 * MINUTE, 0, true],
    ['doomed', 60 * MINUTE, 0, true],
  ] as const)('in parts, while it is %s, %i ms after', (state, expiredForMs, untilNext, isLast) => {
    const parted = { ...upload('direct', expiredForMs, state), multipartId: 'id' };
    expect([msUntilNextCheck(parted), isLastCheck(parted)]).toEqual([untilNext, isLast]);
  });

  test('is checked for the first time five minutes after the URL has expired', () => {
    expect(FIRST_CHECK_MS).toBe(5 * MINUTE);
  });
});

describe('an object stored by the service', () => {
  test('has no URL, and is due once it should be there', () => {
    expect(isAddressValid(upload('post', -1))).toBe(false);
    expect(msUntilNextCheck(upload('avatar', -3))).toBe(3);
    expect(msUntilNextCheck(upload('avatar', 3))).toBe(-3);
  });

  test('may be deleted once it is there, or cannot arrive any more', () => {
    expect(isLastCheck(upload('post', -1))).toBe(false);
    expect(isLastCheck(upload('post', 0))).toBe(true);
    for (const state of ['kept', 'replaced'] as const) expect(isLastCheck(upload('post', -1, state))).toBe(true);
    expect(isLastCheck(upload('post', -1, 'doomed'))).toBe(false);
  });
});

describe('a file that waits for the scanner', () => {
  afterEach(() => void vi.useRealTimers());

  test.each([
    ['just declared', 0, 5000],
    ['younger than the first look', 4999, 5000],
    ['of a minute', MINUTE, MINUTE],
    ['older than the longest wait', 9 * MINUTE, 5 * MINUTE],
  ])('%s is looked for after its own age, within bounds', (_, ageMs, untilNext) => {
    vi.useFakeTimers({ now: 1_800_000_000_000, toFake: ['Date'] });
    expect(msUntilNextLook({ ...upload('direct', -MINUTE), createdAt: Date.now() - ageMs })).toBe(untilNext);
  });

  test('is looked for as it is checked, once nothing new can be sent', () => {
    expect(msUntilNextLook({ ...upload('direct', MINUTE), createdAt: 0 })).toBe(4 * MINUTE);
  });
});
