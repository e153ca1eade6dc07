import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { createMailDelivery } from '../../../server/accounts/mail/delivery.ts';
import { MailDeferred, MailRefused, MailRejected } from '../../../server/parts/mail/contract.ts';
import { leasedMail } from './leased-mail.ts';

const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn(), fatal: vi.fn() };
const row = leasedMail();
const message = { to: { address: row.email }, subject: 'Hello', text: 'Hello', html: '<p>Hello</p>' };
const admit = vi.fn();
const compose = vi.fn();
const send = vi.fn();
const requireLease = vi.fn();
const attempt = createMailDelivery({ admit, compose, mail: { send, close: () => undefined }, log });
const deliver = (mail: typeof row) => attempt(mail, requireLease);

beforeEach(() => {
  vi.resetAllMocks();
  admit.mockImplementation(async (asked) => asked);
  compose.mockResolvedValue(message);
});

test('a mail is sent with the id of its row', async () => {
  expect(await deliver(row)).toEqual({ state: 'sent' });
  expect(send.mock.calls).toEqual([[{ id: 'mail-1', ...message }]]);
});

test('expired, superseded and limited mails are dropped; requests for unknown emails are unwanted', async () => {
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

test('a mail whose lease has ended is left to the process that has it', async () => {
  requireLease.mockImplementationOnce(() => {
    throw new Error('the lease has ended');
  });
  await expect(deliver(row)).rejects.toThrow('the lease has ended');
  expect(send).not.toHaveBeenCalled();
});

test('a mail with a token of another process waits for that process', async () => {
  compose.mockResolvedValueOnce('otherKey');
  expect(await deliver(row)).toEqual({ retryInMs: expect.any(Number) });
  expect(send).not.toHaveBeenCalled();
});

test('the admitted row is composed', async () => {
  const admitted = { ...row, tokenId: 'token-2' };
  admit.mockResolvedValueOnce(admitted);
  await deliver(row);
  expect(compose.mock.calls).toEqual([[admitted]]);
});

test('a permanently rejected mail is not retried', async () => {
  send.mockRejectedValueOnce(new MailRefused('550 unknown'));
  expect(await deliver(row)).toEqual({ state: 'dead' });
});

describe('retries wait twice as long each time, at most ten minutes, with jitter', () => {
  test.each([
    [0, 1],
    [1, 2],
    [4, 16],
    [9, 512],
    [10, 600],
    [50, 600],
  ])('after %i attempts: at most %i s, and at least half of it', async (attempts, seconds) => {
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

test('an outage of the mail server is logged once, and so is its end', async () => {
  for (let i = 0; i < 3; i++) {
    send.mockRejectedValueOnce(new Error('ECONNREFUSED'));
    expect(await deliver(row)).toMatchObject({ retryInMs: expect.any(Number) });
  }
  expect(log.error).toHaveBeenCalledTimes(1);
  // A temporary rejection is not an outage.
  send.mockRejectedValueOnce(new MailDeferred('451 later'));
  await deliver(row);
  expect(log.error).toHaveBeenCalledTimes(1);
  for (let i = 0; i < 2; i++) await deliver(row);
  expect(log.info.mock.calls.filter(([text]) => text === 'mails are sent again')).toHaveLength(1);
});

describe('repeated refusals of a few recipients are no outage; of more in a row they are', () => {
  test.each([
    ['permanent', 2, () => new MailRejected('550 relay not permitted')],
    ['temporary', 5, () => new MailDeferred('454 4.7.1 Relay access denied')],
  ])('%s: of %i', async (_, count, refusal) => {
    const recipients = Array.from({ length: count }, (_, i) => `${i}@example.test`);
    const refuse = (email = '') => {
      send.mockRejectedValueOnce(refusal());
      return deliver({ ...row, id: randomUUID(), email });
    };
    const tolerated = recipients.slice(1);
    // Ends what other tests began.
    await deliver(row);
    for (const email of [...tolerated, ...tolerated]) {
      expect(await refuse(email)).toEqual({ retryInMs: expect.any(Number) });
    }
    await deliver(row);
    await refuse(recipients[0]);
    for (const email of tolerated.slice(1)) await refuse(email);
    expect(log.error).not.toHaveBeenCalled();
    for (const email of recipients) await refuse(email);
    expect(log.error).toHaveBeenCalledTimes(1);
    await deliver(row);
  });
});

test('a database outage leaves the row unchanged', async () => {
  admit.mockRejectedValueOnce(new Error('down'));
  await expect(deliver(row)).rejects.toThrow('down');
});
