import { expect, test } from 'vitest';
import { type Entry, type Outcome, violations } from '../../rig/observe/history.ts';

const user = 'ada@example.test';
const entry = (start: number, action: Entry['action'], more: Partial<Entry> = {}): Entry => ({
  action,
  user,
  start,
  end: start + 5,
  status: 200,
  ...more,
});
const mail = (at: number, subject: string, messageId: string, text = subject) => ({
  to: [user],
  subject,
  messageId,
  text,
  at,
});

/** Two logins, a change, a reset that ends the first session, and the resulting mails. */
const history: Entry[] = [
  entry(10, 'register', { status: 201, password: 'one' }),
  entry(30, 'verify', { token: 'verification' }),
  entry(40, 'login', { password: 'one', session: 'a' }),
  entry(50, 'change', { session: 'a', value: 'first' }),
  entry(60, 'change', { session: 'a', value: 'second', status: undefined }),
  entry(70, 'read', { session: 'a', value: 'first' }),
  entry(80, 'upload', { session: 'a', value: 'uploads/x.webp' }),
  entry(85, 'declare', { session: 'a', value: 'uploads/p.png' }),
  entry(90, 'forgot'),
  entry(110, 'reset', { token: 'reset', password: 'two' }),
  entry(120, 'reset', { token: 'reset', password: 'three', status: 400 }),
  entry(130, 'read', { session: 'a', status: 401 }),
  entry(140, 'login', { password: 'one', status: 401 }),
  entry(150, 'login', { password: 'two', session: 'b' }),
  entry(160, 'logout', { session: 'b' }),
  entry(170, 'read', { session: 'b', status: 401 }),
];
const outcome: Outcome = {
  users: [{ email: user, verified: true, value: 'second' }],
  uploads: ['uploads/p.png', 'uploads/x.webp'],
  objects: ['uploads/x.webp'],
  mails: [
    mail(20, 'Verify your email for x', '1'),
    mail(100, 'Reset your password for x', '2'),
    mail(5000, 'Your password for x was changed', '3'),
  ],
  crashes: [],
};
const [stored] = outcome.users;
const mails = outcome.mails;

test('a correct history has no violation, with either of two possible values', () => {
  expect(violations(history, outcome)).toEqual([]);
  expect(violations(history, { ...outcome, users: [{ email: user, verified: true, value: 'first' }] })).toEqual([]);
});

test.each<[string, Entry[]]>([
  ['a revoked session of ada@example.test authenticated read', [entry(180, 'read', { session: 'b', value: 'first' })]],
  [
    'a revoked session of ada@example.test authenticated change',
    [entry(125, 'change', { session: 'a', value: 'second' })],
  ],
  [
    'a revoked session of ada@example.test authenticated logout',
    [
      // A login with the old password that raced with the reset.
      entry(112, 'login', { password: 'one', session: 'c' }),
      entry(180, 'logout', { session: 'c' }),
    ],
  ],
  [
    'a revoked session of ada@example.test authenticated upload',
    [
      entry(180, 'login', { password: 'two', session: 'd' }),
      entry(190, 'logoutAll', { session: 'd' }),
      entry(200, 'upload', { session: 'd', value: 'uploads/x.webp' }),
    ],
  ],
  [
    'a revoked session of ada@example.test authenticated read',
    [
      entry(180, 'login', { password: 'two', session: 'g' }),
      entry(190, 'login', { password: 'two', session: 'h' }),
      entry(200, 'endSession', { session: 'h', ended: 'g' }),
      entry(210, 'read', { session: 'h', value: 'first' }),
      entry(210, 'read', { session: 'g', value: 'first' }),
    ],
  ],
  [
    'a password of ada@example.test from before a reset opened a session',
    [entry(180, 'login', { password: 'one', session: 'e' })],
  ],
  [
    'a session of ada@example.test that nothing has ended was refused',
    [entry(180, 'login', { password: 'two', session: 'f' }), entry(190, 'read', { session: 'f', status: 401 })],
  ],
  ['an acknowledged password of ada@example.test was refused', [entry(180, 'login', { password: 'two', status: 401 })]],
  [
    'ada@example.test was shown "never", which was overwritten or never written',
    [entry(105, 'read', { session: 'a', value: 'never' })],
  ],
  [
    'ada@example.test was shown "", which was overwritten or never written',
    [entry(105, 'read', { session: 'a', value: '' })],
  ],
  ['login of ada@example.test was answered 500', [entry(180, 'login', { status: 500 })]],
  [
    'the acknowledged upload uploads/y.webp of ada@example.test is lost',
    [entry(105, 'upload', { value: 'uploads/y.webp' })],
  ],
])('found: %s', (violation, added) => {
  expect(violations([...history, ...added], outcome)).toEqual([violation]);
});

test('found: a token spent twice with one notice', () => {
  const again = entry(120, 'reset', { token: 'reset', password: 'two' });
  const found = violations([...history, again], outcome);
  expect(found).toContain('a reset token of ada@example.test was spent 2 times');
});

test.each<[string, Partial<Outcome>]>([
  ['the acknowledged registration of ada@example.test is lost', { users: [] }],
  [
    'the acknowledged verification of ada@example.test is lost',
    { users: [{ email: user, verified: false, value: 'first' }] },
  ],
  [
    'an acknowledged change of ada@example.test is lost: "" is stored',
    { users: [{ email: user, verified: true, value: '' }] },
  ],
  ['the acknowledged declaration of uploads/p.png by ada@example.test is lost', { uploads: ['uploads/x.webp'] }],
  ['the acknowledged upload uploads/x.webp of ada@example.test is lost', { objects: [] }],
  ['of 1 mails "Verify your email" promised to ada@example.test, 0 arrived', { mails: mails.slice(1) }],
  ['of 1 mails "Reset your password" promised to ada@example.test, 0 arrived', { mails: mails.toSpliced(1, 1) }],
  ['of 1 mails "Your password for" promised to ada@example.test, 0 arrived', { mails: mails.slice(0, 2) }],
  [
    'a mail that nobody asked for: "Reset your password" to ada@example.test',
    { mails: [...mails, mail(300, 'Reset your password for x', '9')] },
  ],
  [
    'a mail that nobody asked for: "Hello" to eve@example.test',
    { mails: [...mails, { ...mail(300, 'Hello', '9'), to: ['eve@example.test'] }] },
  ],
  ['a mail that nobody asked for: "Hello" to ada@example.test', { mails: [...mails, mail(300, 'Hello', '9')] }],
  [
    'a mail to ada@example.test came twice without a crash between',
    { mails: [...mails, mail(5900, 'Your password for x was changed', '3')], crashes: [3000, 6000] },
  ],
  [
    'two copies of one mail to ada@example.test differ',
    { mails: [...mails, mail(5900, 'Your password for x was changed', '3', 'another')], crashes: [5500] },
  ],
  [
    'a mail to ada@example.test has no Message-ID',
    { mails: [mail(20, 'Verify your email for x', ''), ...mails.slice(1)] },
  ],
])('found: %s', (violation, change) => {
  expect(violations(history, { ...outcome, ...change })).toEqual([violation]);
});

test('found: a user without a registration', () => {
  const refused = history.map((one) => (one.action === 'register' ? { ...one, status: 409 } : one));
  expect(violations(refused, { ...outcome, mails: mails.slice(1) })).toContain(
    'ada@example.test is stored, but no registration may have succeeded',
  );
});

test('a mail may arrive twice after a crash, and a cancelled call may have taken effect', () => {
  const twice = { mails: [...mails, mail(5900, 'Your password for x was changed', '3')], crashes: [5500] };
  expect(violations(history, { ...outcome, ...twice })).toEqual([]);
  const late = history.map((one) =>
    one.action === 'reset' && one.status === 200 ? { ...one, status: undefined } : one,
  );
  expect(violations(late, { ...outcome, users: stored ? [stored] : [] })).toEqual([]);
});

test('a call that was answered 503 at the deadline of the database may have taken effect, an earlier one may not', () => {
  const answeredAfter = (ms: number) =>
    history.map((one) => (one.action === 'forgot' ? { ...one, status: 503, end: one.start + ms } : one));
  expect(violations(answeredAfter(4000), outcome)).toEqual([]);
  expect(violations(answeredAfter(3999), outcome)).toEqual([
    'a mail that nobody asked for: "Reset your password" to ada@example.test',
  ]);
});

test('a session may be lost if it was opened while the store lost writes', () => {
  const refused = [
    entry(180, 'login', { password: 'two', session: 'f' }),
    entry(190, 'read', { session: 'f', status: 401 }),
  ];
  const all = [...history, ...refused];
  expect(violations(all, { ...outcome, forgotten: [{ from: 183, to: 186 }] })).toEqual([]);
  expect(violations(all, { ...outcome, forgotten: [{ from: 186, to: 300 }] })).toHaveLength(1);
});
