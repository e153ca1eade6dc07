import { describe, expect, test, vi } from 'vitest';
import { User } from '../../entities/index.ts';
import {
  AFTER_NOT_ME,
  isChangePurpose,
  isTokenPurpose,
  type MailKind,
  mailKinds,
} from '../../server/accounts/mail-kinds.ts';
import { createMailComposer } from '../../server/accounts/mails.ts';
import type { LeasedMail } from '../../server/accounts/outbox-rows.ts';
import { parseConfig } from '../../server/config/index.ts';
import { escapeHtml } from '../../server/escape-html.ts';
import { readTexts } from '../../server/texts/index.ts';
import { leasedMail } from './leased-mail.ts';

const HOUR = 3_600_000;
const email = 'ada+a&b@example.test';
const find = vi.fn(async (id: string) => (id === 'user_1' ? { email: 'stored@example.test' } : undefined));
const languagesOf = vi.fn(
  async (): Promise<{ language: string | null; browserLanguage: string | null } | undefined> => undefined,
);
const deriveAgain = vi.fn(async (_tables: unknown, purpose: string, id: string) => {
  if (id === 'token-of-another') return 'foreign';
  return id === 'token-1' ? { token: `${purpose}_${id}` } : undefined;
});
const parts = {
  appUrl: 'https://accounts.test:8443',
  site: 'accounts.test:8443',
  brand: parseConfig({}).brand,
  database: { query: (work: (tables: unknown) => unknown) => work({}) },
  texts: readTexts(undefined),
  users: { find, languagesOf },
  tokens: { deriveAgain, derive: (purpose: string, id: string) => `${purpose}_${id}` },
  emailChanges: {
    deriveAgain: async (tables: unknown, purpose: string, id: string) =>
      id === 'token-taken' ? 'taken' : deriveAgain(tables, purpose, id),
  },
  invitations: { deriveAgain: async (tables: unknown, id: string) => deriveAgain(tables, 'invitation', id) },
} as unknown as Parameters<typeof createMailComposer>[0];
const compose = createMailComposer(parts);

const row = (kind: MailKind, changes: Partial<LeasedMail> = {}) => leasedMail({ kind, email, ...changes });

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

The link works once and for one hour. If you did not ask for it, you can ignore this mail: nothing changes.`,
    'https://accounts.test:8443/reset-password?token=reset-password_token-1&amp;email=ada%2Ba%26b%40example.test',
  ],
  [
    'invitation',
    7 * 24 * HOUR,
    'You are invited to accounts.test:8443',
    `You are invited to create an account at accounts.test:8443, with this email.

Create your account:
https://accounts.test:8443/register?token=invitation_token-1&email=ada%2Ba%26b%40example.test

The link works once and for 7 days. If you did not expect it, you can ignore this mail.`,
    'https://accounts.test:8443/register?token=invitation_token-1&amp;email=ada%2Ba%26b%40example.test',
  ],
  [
    'password-changed',
    24 * HOUR,
    'Your password for accounts.test:8443 was changed',
    `The password of your account at accounts.test:8443 was just changed, and every device was logged out.

If that was not you, ask for a new password at once: the person who did it can read your mail.

Ask for a new password:
https://accounts.test:8443/forgot-password

You need not do anything if you changed it yourself.`,
    'https://accounts.test:8443/forgot-password',
  ],
  [
    'confirm-email',
    24 * HOUR,
    'Confirm your new email for accounts.test:8443',
    `A user of accounts.test:8443 wants this to be the email of their account. If that is you, confirm it in a browser in which you are logged in there.

Confirm email:
https://accounts.test:8443/confirm-email?token=confirm-email_token-1

The link works for 24 hours. If it was not you, you can ignore this mail: nothing happens.`,
    'https://accounts.test:8443/confirm-email?token=confirm-email_token-1',
  ],
  [
    'email-changed',
    7 * 24 * HOUR,
    'The email of your account at accounts.test:8443 was changed',
    `The email of your account at accounts.test:8443 is password,<acme> now. You can no longer log in with this one.

If that was not you, undo it: the account gets this email back, and every device is logged out.

Undo the change:
https://accounts.test:8443/undo-email-change?token=email-changed_token-1

The link works for 7 days, also after further changes. You need not do anything if you changed it yourself.`,
    'https://accounts.test:8443/undo-email-change?token=email-changed_token-1',
  ],
  [
    'email-change-undone',
    24 * HOUR,
    'The email of your account at accounts.test:8443 was put back',
    `A change of the email of your account at accounts.test:8443 was undone: it is password,<acme> again. Every device was logged out.

The person who changed it may know the password, so it no longer works, and neither does what was added to log in with since. Set a new one.

Set a new password:
https://accounts.test:8443/forgot-password

The link to set it is mailed to that email only.`,
    'https://accounts.test:8443/forgot-password',
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
  [
    'account-blocked',
    7 * 24 * HOUR,
    'Your account at accounts.test:8443 is blocked',
    `Your account at accounts.test:8443 was blocked. Every device was logged out, and it cannot be opened until it is unblocked.

Everything that is stored about you is kept.

If you do not know why, ask the people who run the site.`,
    undefined,
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

test('the owner of an address that was given for another account is told, without a link to confirm', async () => {
  const mail = await compose(row('confirm-email', { tokenId: 'token-taken' }));
  expect(mail).toMatchObject({ subject: 'Your email was given for another account at accounts.test:8443' });
  expect(JSON.stringify(mail)).not.toMatch(/token|confirm-email/);
});

test('a changed password names who else was logged out', async () => {
  const { text } = (await compose(row('password-changed', { detail: 'user' }))) as { text: string };
  expect(text).toContain('every other device was logged out');
  expect(text).toContain('was logged in to your account');
});

test('a password that was disabled by its owner is not said to be as it was', async () => {
  const { text } = (await compose(row('reset-password', { detail: AFTER_NOT_ME }))) as { text: string };
  expect(text).toContain('Every device was logged out, and your former password no longer works.');
  expect(text).toContain('/reset-password?token=reset-password_token-1&');
  expect(text).not.toContain('nothing changes');
});

test('a role is told of by what it means', async () => {
  const made = (await compose(row('role-changed', { detail: 'admin' }))) as { subject: string; text: string };
  expect(made.subject).toBe('You are an administrator of accounts.test:8443');
  expect(made.text).toContain('Every device was logged out.');
  const unmade = (await compose(row('role-changed', { detail: 'user' }))) as { subject: string; text: string };
  expect(unmade.subject).toBe('You are no longer an administrator of accounts.test:8443');
  expect(unmade.text).not.toContain('logged out');
});

test('a deletion by an administrator or the operator is said to be one, and until when it can be undone', async () => {
  const { text } = (await compose(row('account-closed', { detail: '2026-12-06T00:00:00.000Z' }))) as { text: string };
  expect(text).toContain('Your account at accounts.test:8443 was deleted by the people who run the site.');
  expect(text).not.toContain('You asked');
  expect(text).toMatch(/log in by .*6.*2026.* and choose to restore it/s);
});

test('a mail names a provider as the pages do', async () => {
  const { text } = (await compose(row('identity-linked', { detail: 'my_company' }))) as { text: string };
  expect(text).toContain('can now be opened through My Company too');
});

test('without the address, which rows of the release before lack, a mail goes to the one of the user', async () => {
  expect(await compose(row('password-changed', { email: '' }))).toMatchObject({
    to: { address: 'stored@example.test' },
  });
  for (const userId of [null, 'user_2'])
    expect(await compose(row('password-changed', { email: '', userId }))).toBeUndefined();
});

test('no link is mailed with a token that was replaced, or deleted with its user, nor without one', async () => {
  for (const kind of ['verify-email', 'reset-password', 'invitation'] as const) {
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
  const kindsThat = (is: (kind: MailKind) => boolean) => mails.map(([kind]) => kind).filter(is);
  expect(kindsThat(isTokenPurpose)).toEqual(['verify-email', 'reset-password']);
  expect(kindsThat(isChangePurpose)).toEqual(['confirm-email', 'email-changed']);
});

test('what is special in HTML is escaped', () => {
  expect(escapeHtml(`<a href="x" title='y'>&</a>`)).toBe(
    '&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;&lt;/a&gt;',
  );
});

describe('with a brand', () => {
  const name = '"Ada" & <Co>';
  const { brand } = parseConfig({
    APP_NAME: name,
    APP_LOGO_URL: '/logo.png?a=1&b=2',
    BRAND_COLOR: '#0f766e',
    SUPPORT_URL: 'mailto:help@example.test?subject=Login',
    TERMS_URL: '/terms',
    PRIVACY_URL: 'https://example.test/privacy',
  });
  const composeBranded = createMailComposer({ ...parts, site: name, brand });

  test('a mail says its name in place of the host, and ends with its pages', async () => {
    const mail = (await composeBranded(row('verify-email'))) as { subject: string; text: string };
    expect(mail.subject).toBe(`Verify your email for ${name}`);
    expect(mail.text).toContain(`so that you can log in to ${name}.`);
    const closing = 'The link works once and for 24 hours. If you did not create an account, you can ignore this mail.';
    expect(mail.text.slice(mail.text.indexOf(closing))).toBe(`${closing}

Support: help@example.test
Terms of service: https://accounts.test:8443/terms
Privacy policy: https://example.test/privacy
`);
  });

  test('the HTML has its picture, its colour and its pages, escaped', async () => {
    const { html } = (await composeBranded(row('verify-email'))) as { html: string };
    const escaped = '&quot;Ada&quot; &amp; &lt;Co&gt;';
    expect(html).toContain(`<img src="https://accounts.test:8443/logo.png?a=1&amp;b=2" alt="${escaped}"`);
    expect(html).toContain('background:#0f766e;color:#ffffff');
    expect(html).not.toContain('#1d4ed8');
    expect(html).not.toContain(name);
    const links = [...html.matchAll(/<a href="([^"]*)"[^>]*>([^<]*)<\/a>/g)].map(([, url, label]) => [label, url]);
    expect(links.slice(-3)).toEqual([
      ['Support', 'mailto:help@example.test?subject=Login'],
      ['Terms of service', 'https://accounts.test:8443/terms'],
      ['Privacy policy', 'https://example.test/privacy'],
    ]);
  });
});
