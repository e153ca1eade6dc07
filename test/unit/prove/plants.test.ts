import { describe, expect, test } from 'vitest';
import { newSecret, signedHeaders } from '../../../server/webhooks/signature.ts';
import { check, countOf, type Evidence } from '../../prove/evidence.ts';
import { plants } from '../../prove/plants.ts';
import type { Entry } from '../../rig/observe/history.ts';
import type { Use } from '../../rig/observe/tokens.ts';

/** `npm run prove` finds each kind of fault: each is planted into evidence made by hand. */

const user = 'ada@example.test';
const entry = (start: number, action: Entry['action'], more: Partial<Entry> = {}): Entry => ({
  action,
  user,
  start,
  end: start + 5,
  status: 200,
  ...more,
});
const use = (start: number, action: Use['action'], of: string, token: string, accepted = true): Use => ({
  action,
  of,
  token,
  start,
  end: start + 5,
  status: accepted ? 200 : 400,
  accepted,
});
const mail = (at: number, subject: string, messageId: string) => ({
  to: [user],
  subject,
  messageId,
  text: subject,
  at,
});

const secret = newSecret();
const types = ['user.created', 'user.verified', 'session.created', 'user.updated', 'upload.stored'];
const events = [...types, 'user.password_changed'].map((type, i) => ({
  id: `event-${i + 1}`,
  number: i + 1,
  type,
  data: { userId: 'user_1' },
}));
const received = events.map((event) => {
  const body = JSON.stringify(event);
  const headers = signedHeaders({ id: event.id, body }, [secret], Date.now());
  return { id: event.id, event, body, headers };
});

const evidence: Evidence = {
  history: [
    entry(10, 'register', { status: 201, password: 'one' }),
    entry(20, 'verify', { token: 'verification' }),
    entry(30, 'login', { password: 'one', session: 'a' }),
    entry(40, 'change', { session: 'a', value: 'first' }),
    entry(50, 'upload', { session: 'a', value: 'uploads/x.webp' }),
    entry(60, 'forgot'),
    entry(80, 'reset', { token: 'reset', password: 'two' }),
    entry(90, 'read', { session: 'a', status: 401 }),
  ],
  outcome: {
    users: [{ email: user, verified: true, value: 'first' }],
    uploads: ['uploads/x.webp'],
    objects: ['uploads/x.webp'],
    mails: [
      mail(15, 'Verify your email', '1'),
      mail(70, 'Reset your password', '2'),
      mail(95, 'Your password for x', '3'),
    ],
    crashes: [],
  },
  uses: [
    use(10, 'redeem', 'grant 1', 'code'),
    use(20, 'refresh', 'grant 1', 'one'),
    use(30, 'introspect', 'grant 1', 'two'),
    use(10, 'key', 'key 1', 'acct'),
    use(20, 'end', 'key 1', 'acct'),
    use(30, 'key', 'key 1', 'acct', false),
  ],
  events,
  userIds: new Map([[user, 'user_1']]),
  receivers: [{ received, secret }],
};

test('evidence without a fault has no finding', () => expect(countOf(check(evidence))).toBe(0));

describe.each(plants)('$name', ({ kind, falsify }) => {
  test(`is found as “${kind}”`, () => {
    const planted = falsify(evidence);
    expect(planted).toBeDefined();
    expect(planted && check(planted)[kind]).not.toEqual([]);
  });
});

test('every kind of finding has a plant', () => {
  expect(new Set(plants.map(({ kind }) => kind))).toEqual(new Set(Object.keys(check(evidence))));
});
