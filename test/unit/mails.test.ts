import { describe, expect, test, vi } from 'vitest';
import { User } from '../../entities/index.ts';
import { isTokenPurpose, type MailKind, mailKinds } from '../../server/accounts/mail-kinds.ts';
import { createMailComposer, escapeHtml } from '../../server/accounts/mails.ts';
import type { LeasedMail } from '../../server/accounts/outbox-rows.ts';

const HOUR = 3_600_000;
const email = 'ada+a&b@example.test';
const find = vi.fn(async (id: string) => (id === 'user_1' ? { email: 'stored@example.test' } : undefined));
const deriveAgain = vi.fn(async (_tables: unknown, purpose: string, id: string) => {
  if (id === 'token-of-another') return 'foreign';
  return id === 'token-1' ? { token: `${purpose}_${id}` } : undefined;
});
const compose = createMailComposer({
  appUrl: 'https://accounts.test:8443',
  database: { query: (work: (tables: unknown) => unknown) => work({}) },
  users: { find },
  tokens: { deriveAgain, derive: (purpose: string, id: string) => `${purpose}_${id}` },
} as unknown as Parameters<typeof createMailComposer>[0]);

const row = (kind: MailKind, changes: Partial<LeasedMail> = {}): LeasedMail => ({
  id: 'mail-1',
  kind,
  email,
  userId: 'user_1',
  tokenId: 'token-1',
  detail: null,
  traceparent: null,
  attempts: 0,
  expired: false,
  isNew: false,
  ...changes,
});

const mails: [kind: MailKind, lifeMs: number, subject: string, text: string, link: string | undefined][] = [
  [
    'verify-email',
    24 * HOUR,
    'Verify your email for accounts.test:8443',
    `Please confirm that this address is yours, so that you can log in to accounts.test:8443.

Verify email:
https://accounts.test:8443/verify-email?token=verify-email_token-1

The link works once and for 24 hours. If you did not create an account, you can ignore this mail.`,
    'https://accounts.test:8443/verify-email?token=verify-email_token-1',
  ],
  [
    'reset-password',
    HOUR,
    'Reset your password for accounts.test:8443',
    `A new password was asked for, for your account at accounts.test:8443.

Set new password:
https://accounts.test:8443/reset-password?token=reset-password_token-1&email=ada%2Ba%26b%40example.test

The link works once and for one hour. If you did not ask for it, you can ignore this mail: your password stays.`,
    'https://accounts.test:8443/reset-password?token=reset-password_token-1&amp;email=ada%2Ba%26b%40example.test',
  ],
  [
    'password-changed',
    24 * HOUR,
    'Your password for accounts.test:8443 was changed',
    `The password of your account at accounts.test:8443 was just changed, and every device was logged out.

If that was not you, ask for a new password at once: the person who did it can read your mail.

You need not do anything if you changed it yourself.`,
    undefined,
  ],
  [
    'login-methods-removed',
    24 * HOUR,
    'Ways to log in to accounts.test:8443 were removed',
    `Your account at accounts.test:8443 could also be opened by a password and through <acme>. We have no proof that you added that yourself, so it was removed, and every device was logged out.

If it was yours, add it again: ask for a new password, or log in through the provider once more.

Set a password:
https://accounts.test:8443/forgot-password

You need not do anything if you did not add it.`,
    'https://accounts.test:8443/forgot-password',
  ],
];

describe.each(mails)('a mail of the kind %s', (kind, lifeMs, subject, text, link) => {
  test('says this', async () => {
    const mail = await compose(row(kind, { detail: 'password,<acme>' }));
    expect(mail).toMatchObject({ to: { address: email }, subject, text: `Hello,\n\n${text}\n` });
    expect(mailKinds[kind].lifeMs).toBe(lifeMs);
  });

  test('says the same in HTML, where all of it is escaped', async () => {
    const { html } = (await compose(row(kind, { detail: 'password,<acme>' }))) as { html: string };
    const [, words] = /<body[^>]*>(.*)<\/body>/s.exec(html) ?? [];
    const spoken = words?.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
    const parts = text.split('\n\n').map((part) => {
      const [, label] = /^(.*):\nhttps:/.exec(part) ?? [];
      return label ? `${label} If the button does not work, open this address: ${link}` : escapeHtml(part);
    });
    expect(spoken?.trim()).toBe(['Hello,', ...parts].join(' '));
    expect(html).toContain(`<title>${escapeHtml(subject)}</title>`);
    expect(html.split(`href="${link}"`)).toHaveLength(link ? 3 : 1);
  });
});

test('without the address, which rows of the release before lack, a mail goes to the one of the user', async () => {
  expect(await compose(row('password-changed', { email: '' }))).toMatchObject({
    to: { address: 'stored@example.test' },
  });
  for (const userId of [null, 'user_2'])
    expect(await compose(row('password-changed', { email: '', userId }))).toBeUndefined();
});

test('no link is mailed with a token that was replaced, or deleted with its user, nor without one', async () => {
  for (const kind of ['verify-email', 'reset-password'] as const) {
    for (const changes of [{ tokenId: null }, { tokenId: 'token-0' }])
      expect(await compose(row(kind, changes))).toBeUndefined();
  }
});

test('a token that only another process can derive is told from one that is gone', async () => {
  expect(await compose(row('verify-email', { tokenId: 'token-of-another' }))).toBe('foreign');
});

test('the token of a mail that was queued just now needs no look-up', async () => {
  deriveAgain.mockClear();
  expect(await compose(row('verify-email', { isNew: true }))).toMatchObject({ to: { address: email } });
  expect(deriveAgain).not.toHaveBeenCalled();
});

test('a notice needs neither user nor token', async () => {
  for (const kind of ['password-changed', 'login-methods-removed'] as const)
    expect(await compose(row(kind, { userId: null, tokenId: null }))).toMatchObject({ to: { address: email } });
});

test('a link to verify is for the unverified, one to reset for every user; notices have none', () => {
  const user = User.register({ email, name: 'Ada', passwordHash: 'x' });
  const isFor = () => (['verify-email', 'reset-password'] as const).map((kind) => mailKinds[kind].token?.isFor(user));
  expect(isFor()).toEqual([true, true]);
  user.verifyEmail();
  expect(isFor()).toEqual([false, true]);
  expect(mails.map(([kind]) => isTokenPurpose(kind))).toEqual([true, true, false, false]);
});

test('what is special in HTML is escaped', () => {
  expect(escapeHtml(`<a href="x" title='y'>&</a>`)).toBe(
    '&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;&lt;/a&gt;',
  );
});
