import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { newSecret, signedHeaders } from '../../../server/webhooks/signature.ts';
import { type Answered, deliveryViolations } from '../../rig/observe/deliveries.ts';

/** The checker of deliveries finds each fault. */

const secret = newSecret();
const stored = [1, 2, 3, 4].map((number) => ({
  id: `event-${number}`,
  number,
  userId: number % 2 ? 'ada' : 'charles',
}));

const delivered = (number: number, { id = `event-${number}`, by = secret } = {}): Answered => {
  const event = { id, number, data: { userId: number % 2 ? 'ada' : 'charles' } };
  const body = JSON.stringify(event);
  return { id, body, event, headers: signedHeaders({ id, body }, [by], Date.now()) };
};
const all = [1, 2, 3, 4].map((number) => delivered(number));
const violations = (answered: Answered[]) => deliveryViolations(stored, answered, secret);

test('what arrives in the order of each user is right, also twice', () => {
  expect(violations(all)).toEqual([]);
  expect(violations([...all, delivered(1), delivered(4)])).toEqual([]);
  expect(violations([delivered(2), delivered(1), delivered(4), delivered(3)])).toEqual([]);
});

test('a lost event is found', () => expect(violations(all.slice(1))).toEqual(['lost: 1 of ada']));

test('swapped events of a user are found', () => {
  expect(violations([delivered(3), delivered(2), delivered(1), delivered(4)])).toEqual(['swapped: 1 of ada after 3']);
});

test('an event under a second id is found', () => {
  expect(violations([...all, delivered(1, { id: 'other' })])).toEqual(['another id: other']);
});

test('a delivery without the signature of the secret is found', () => {
  const [first, ...rest] = all as [Answered, ...Answered[]];
  expect(violations([delivered(1, { by: newSecret() }), ...rest])).toEqual(['unsigned: event-1']);
  expect(violations([{ ...first, headers: {} }, ...rest])).toEqual(['unsigned: event-1']);
});

test('the library of the specification verifies our signatures, and signs the same', () => {
  const { id, body, headers } = all[0] as Answered;
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({ id });
  const at = new Date(Number(headers['webhook-timestamp']) * 1000);
  expect(new Webhook(secret).sign(id, at, body)).toBe(headers['webhook-signature']);
});
