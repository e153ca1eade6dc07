import { beforeEach, describe, expect, test, vi } from 'vitest';
import { createMailDelivery } from '../../server/accounts/mail-delivery.ts';
import { MailDeferred, MailRefused } from '../../server/parts/mail/contract.ts';
import { leasedMail } from './leased-mail.ts';

const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn(), fatal: vi.fn() };
const row = leasedMail();
const message = { to: { address: row.email }, subject: 'Hello', text: 'Hello', html: '<p>Hello</p>' };
const admit = vi.fn();
const compose = vi.fn();
const send = vi.fn();
const deliver = createMailDelivery({ admit, compose, mail: { send, close: () => undefined }, log });

beforeEach(() => {
  vi.resetAllMocks();
  admit.mockImplementation(async (asked) => asked);
  compose.mockResolvedValue(message);
});

test('a mail is sent under the id of its row', async () => {
  expect(await deliver(row)).toEqual({ state: 'sent' });
  expect(send.mock.calls).toEqual([[{ id: 'mail-1', ...message }]]);
});

test('what has expired, was superseded or is past a limit is dropped, and a request for nobody is unwanted', async () => {
  expect(await deliver({ ...row, expired: true })).toEqual({ state: 'dropped' });
  expect(admit).not.toHaveBeenCalled();
  admit.mockResolvedValueOnce('limited');
  expect(await deliver(row)).toEqual({ state: 'dropped' });
  admit.mockResolvedValueOnce('unwanted');
  expect(await deliver(row)).toBe('unwanted');
  expect(compose).not.toHaveBeenCalled();
  compose.mockResolvedValueOnce(undefined);
  expect(await deliver(row)).toEqual({ state: 'dropped' });
  expect(send).not.toHaveBeenCalled();
});

test('a mail whose token this process cannot derive waits for one that can', async () => {
  compose.mockResolvedValueOnce('foreign');
  expect(await deliver(row)).toEqual({ retryInMs: expect.any(Number) });
  expect(send).not.toHaveBeenCalled();
});

test('what is admitted is what is composed', async () => {
  const admitted = { ...row, tokenId: 'token-2' };
  admit.mockResolvedValueOnce(admitted);
  await deliver(row);
  expect(compose.mock.calls).toEqual([[admitted]]);
});

test('a mail that is refused for good is never tried again', async () => {
  send.mockRejectedValueOnce(new MailRefused('550 unknown'));
  expect(await deliver(row)).toEqual({ state: 'dead' });
});

describe('a failed attempt is repeated after a time that doubles, at most ten minutes, with jitter', () => {
  test.each([
    [0, 1],
    [1, 2],
    [4, 16],
    [9, 512],
    [10, 600],
    [50, 600],
  ])('after %i attempts: %i s at most, and half of it at least', async (attempts, seconds) => {
    for (const [random, factor] of [
      [0, 0.5],
      [0.5, 0.75],
    ] as const) {
      vi.spyOn(Math, 'random').mockReturnValue(random);
      send.mockRejectedValueOnce(new MailDeferred('451 later'));
      expect(await deliver({ ...row, attempts })).toEqual({ retryInMs: seconds * 1000 * factor });
    }
  });
});

test('a mail server that is down is told once, and once that mails go out again', async () => {
  for (let i = 0; i < 3; i++) {
    send.mockRejectedValueOnce(new Error('ECONNREFUSED'));
    expect(await deliver(row)).toMatchObject({ retryInMs: expect.any(Number) });
  }
  expect(log.error).toHaveBeenCalledTimes(1);
  // Refused for now is no outage.
  send.mockRejectedValueOnce(new MailDeferred('451 later'));
  await deliver(row);
  expect(log.error).toHaveBeenCalledTimes(1);
  for (let i = 0; i < 2; i++) await deliver(row);
  expect(log.info.mock.calls.filter(([text]) => text === 'mails go out again')).toHaveLength(1);
});

test('an outage of the database is no outcome: the row stays as it is', async () => {
  admit.mockRejectedValueOnce(new Error('down'));
  await expect(deliver(row)).rejects.toThrow('down');
});
