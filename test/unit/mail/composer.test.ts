import { describe, expect, test, vi } from 'vitest';
import { User } from '../../../entities/index.ts';
import { createMailComposer } from '../../../server/accounts/mail/composer.ts';
import { AFTER_NOT_ME, type Link, type MailKind, mailKinds } from '../../../server/accounts/mail/kinds.ts';
import { toDetail } from '../../../server/accounts/mail/new-device.ts';
import type { LeasedMail } from '../../../server/accounts/mail/outbox-rows.ts';
import { pageColors } from '../../../server/config/brand-color.ts';
import { parseConfig } from '../../../server/config/index.ts';
import { escapeHtml } from '../../../server/lib/escape-html.ts';
import { readTexts } from '../../../server/texts/index.ts';
import { leasedMail } from './leased-mail.ts';

const HOUR = 3_600_000;
const email = 'ada+a&b@example.test';
const find = vi.fn(async (id: string) => (id === 'user_1' ? { email: 'stored@example.test' } : undefined));
const languagesOf = vi.fn(
  async (): Promise<{ language: string | null; browserLanguage: string | null } | undefined> => undefined,
);
const methodsOf = vi.fn(async (): Promise<string[]> => []);
const deriveAgain = vi.fn(async (_tables: unknown, purpose: string, id: string) => {
  if (id === 'token-of-another') return 'otherKey';
  return id === 'token-1' ? { token: `${purpose}_${id}` } : undefined;
});
const parts = {
  appUrl: 'https://accounts.test:8443',
  site: 'accounts.test:8443',
  brand: parseConfig({}).brand,
  timeZone: 'UTC',
  database: { query: (work: (tables: unknown) => unknown) => work({}) },
  texts: readTexts(undefined),
  users: { find, languagesOf },
  methodsOf,
  tokens: { deriveAgain, derive: (purpose: string, id: string) => `${purpose}_${id}` },
  emailChanges: {
    deriveAgain: async (tables: unknown, purpose: string, id: string) =>
      id === 'token-taken' ? 'taken' : deriveAgain(tables, purpose, id),
  },
  invitations: { deriveAgain: async (tables: unknown, id: string) => deriveAgain(tables, 'invitation', id) },
  emailCodes: { derive: (id: string) => (id === 'mail-of-another' ? 'otherKey' : { code: '001843' }) },
} as unknown as Parameters<typeof createMailComposer>[0];
const compose = createMailComposer(parts);

const row = (kind: MailKind, changes: Partial<LeasedMail> = {}) => leasedMail({ kind, email, ...changes });

const mails: [kind: MailKind, lifeMs: number, subject: string, text: string, link: string | undefined][] = [
  [
    'verify-email',
    24 * HOUR,
    'Verify your email for accounts.test:8443',
    `Please confirm that this email is yours, so that you can log in to accounts.test:8443.

Verify email:
https://accounts.test:8443/verify-email?token=verify-email_token-1

Or enter this code in the browser where you created the account:

898374

The link works once, for 24 hours. If you did not create an account, you can ignore this email.

@accounts.test #898374`,
    'https://accounts.test:8443/verify-email?token=verify-email_token-1',
  ],
  [
    'email-code',
    HOUR / 6,
    'Your code for accounts.test:8443',
    `Someone, probably you, is trying to log in to accounts.test:8443 with this email. Enter the code only in the browser where you requested it.

No one at accounts.test:8443 will ever ask you for it.

Your code:

001843

The code works once, for 10 minutes. If you did not request it, you can ignore this email.

@accounts.test #001843`,
    undefined,
  ],
  [
    'reset-password',
    HOUR,
    'Reset your password for accounts.test:8443',
    `We received a request to reset the password of your account at accounts.test:8443.

Set new password:
https://accounts.test:8443/reset-password?token=reset-password_token-1&email=ada%2Ba%26b%40example.test

The link works once, for one hour. If you did not request it, you can ignore this email: nothing changes.`,
    'https://accounts.test:8443/reset-password?token=reset-password_token-1&amp;email=ada%2Ba%26b%40example.test',
  ],
  [
    'invitation',
    7 * 24 * HOUR,
    'You are invited to accounts.test:8443',
    `You are invited to create an account at accounts.test:8443 with this email.

Create your account:
https://accounts.test:8443/register?token=invitation_token-1&email=ada%2Ba%26b%40example.test

The link works once, for 7 days. If you did not expect it, you can ignore this email.`,
    'https://accounts.test:8443/register?token=invitation_token-1&amp;email=ada%2Ba%26b%40example.test',
  ],
  [
    'password-changed',
    7 * 24 * HOUR,
    'Your password for accounts.test:8443 was changed',
    `The password of your account at accounts.test:8443 was just changed, and you were logged out on all devices.

If that was not you, request a new password immediately: the person who changed it can read your email.

Request a new password:
https://accounts.test:8443/forgot-password

If you changed it yourself, you do not need to do anything.`,
    'https://accounts.test:8443/forgot-password',
  ],
  [
    'confirm-email',
    24 * HOUR,
    'Confirm your new email for accounts.test:8443',
    `A user of accounts.test:8443 wants to use this email for their account. If that is you, open the link in the browser where you requested it.

Confirm email:
https://accounts.test:8443/confirm-email?token=confirm-email_token-1

The link works for 24 hours. If it was not you, you can ignore this email: nothing changes.`,
    'https://accounts.test:8443/confirm-email?token=confirm-email_token-1',
  ],
  [
    'email-changed',
    7 * 24 * HOUR,
    'The email of your account at accounts.test:8443 was changed',
    `The email of your account at accounts.test:8443 is now password,<acme>. You can no longer log in with this one.

If that was not you, undo the change: this becomes the email of the account again, and all devices are logged out.

Undo the change:
https://accounts.test:8443/undo-email-change?token=email-changed_token-1

The link works for 7 days, even after further changes. If you changed it yourself, you do not need to do anything.`,
    'https://accounts.test:8443/undo-email-change?token=email-changed_token-1',
  ],
  [
    'email-change-undone',
    7 * 24 * HOUR,
    'The email of your account at accounts.test:8443 was restored',
    `A change of the email of your account at accounts.test:8443 was undone: it is password,<acme> again. You were logged out on all devices.

The person who changed it may know the password, so it no longer works. Login methods added in the week before the change, or since, were removed. Set a new password.

Set a new password:
https://accounts.test:8443/forgot-password

The link to set it is sent only to that email.`,
    'https://accounts.test:8443/forgot-password',
  ],
  [
    'login-methods-removed',
    7 * 24 * HOUR,
    'Login methods for accounts.test:8443 were removed',
    `It was also possible to log in to your account at accounts.test:8443 with a password and through <acme>. We have no proof that you added this yourself, so it was removed, and you were logged out on all devices.

If it was yours, add it again: request a new password, or log in through the provider once more.

Set a password:
https://accounts.test:8443/forgot-password

If you did not add it, you do not need to do anything.`,
    'https://accounts.test:8443/forgot-password',
  ],
  [
    'account-blocked',
    7 * 24 * HOUR,
    'Your account at accounts.test:8443 is blocked',
    `Your account at accounts.test:8443 was blocked. You were logged out on all devices, and nobody can log in to it until it is unblocked.

All data stored about you is kept.

If you do not know why, contact the operator of the site.`,
    undefined,
  ],
];

describe.each(mails)('a mail of the kind %s', (kind, lifeMs, subject, text, link) => {
  test('has this text', async () => {
    const mail = await compose(row(kind, { detail: 'password,<acme>' }));
    expect(mail).toMatchObject({ to: { address: email }, subject, text: `Hello,\n\n${text}\n` });
    expect(mailKinds[kind].lifeMs).toBe(lifeMs);
  });

  test('has the same text in HTML, escaped', async () => {
    const { html } = (await compose(row(kind, { detail: 'password,<acme>' }))) as { html: string };
    const [, words] = /<body[^>]*>(.*)<\/body>/s.exec(html) ?? [];
    const spoken = words?.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
    const parts = text.split('\n\n').map((part) => {
      const [, label] = /^(.*):\nhttps:/.exec(part) ?? [];
      return label ? `${label} If the button does not work, open this address: ${link}` : escapeHtml(part);
    });
    expect(spoken?.trim()).toBe(['accounts.test:8443', escapeHtml(subject), 'Hello,', ...parts].join(' '));
    expect(html).toContain(`<title>${escapeHtml(subject)}</title>`);
    expect(html.split(`href="${link}"`)).toHaveLength(link ? 3 : 1);
  });
});

test('a mail with a code waits for a process with its secret; without an account it has none', async () => {
  expect(await compose(row('email-code', { id: 'mail-of-another', detail: 'hash 0' }))).toBe('otherKey');
  const mail = await compose(row('email-code', { detail: 'hash nobody' }));
  expect(mail).toMatchObject({ subject: 'No account for this email at accounts.test:8443' });
  expect(JSON.stringify(mail)).not.toContain('001843');
});

test('the owner of a taken email gets a mail without a confirmation link', async () => {
  const mail = await compose(row('confirm-email', { tokenId: 'token-taken' }));
  expect(mail).toMatchObject({ subject: 'Your email was entered for another account at accounts.test:8443' });
  expect(JSON.stringify(mail)).not.toMatch(/token|confirm-email/);
});

test('a mail about a changed password names who was logged out', async () => {
  const { text } = (await compose(row('password-changed', { detail: 'user' }))) as { text: string };
  expect(text).toContain('you were logged out on all other devices');
  expect(text).toContain('was logged in to your account');
});

test('a mail after “This was not me” does not say that nothing changed', async () => {
  const { text } = (await compose(row('reset-password', { detail: AFTER_NOT_ME }))) as { text: string };
  expect(text).toContain('You were logged out on all devices, and your former password no longer works.');
  expect(text).toContain('/reset-password?token=reset-password_token-1&');
  expect(text).not.toContain('nothing changes');
});

test('a mail about a secured account lists the remaining login methods', async () => {
  const paragraph =
    'You can still log in through GitHub and with a passkey. This was added earlier, so it was not removed.';
  for (const [kind, detail] of [
    ['reset-password', AFTER_NOT_ME],
    ['email-change-undone', email],
  ] as const) {
    methodsOf.mockResolvedValueOnce(['github', 'passkey']);
    const { text, html } = (await compose(row(kind, { detail }))) as { text: string; html: string };
    for (const words of [text, html]) expect(words).toContain(paragraph);
    expect(methodsOf).toHaveBeenLastCalledWith({ userId: 'user_1', email });
  }
  methodsOf.mockClear();
  await compose(row('reset-password'));
  expect(methodsOf).not.toHaveBeenCalled();
});

test.each([
  ['Firefox on Linux', 'Firefox on Linux'],
  ['curl', 'curl'],
  ['Windows', 'Windows'],
  ['Unknown device', 'an unknown device'],
  ['www.accounts-help.com', 'an unknown device'],
  ['www.accounts-help.com on Linux', 'an unknown device'],
  ['Firefox on www.accounts-help.com', 'an unknown device'],
  ['Call 0800-12345 on Linux', 'an unknown device'],
])('a device called %s is %s', async (device, words) => {
  const detail = toDetail({ at: 0, method: 'password', address: '203.0.113.7', device });
  const { text } = (await compose(row('new-device', { detail }))) as { text: string };
  expect(text.toLowerCase()).toContain(`\n${words.replace('an unknown', 'unknown').toLowerCase()}, on 1 january 1970`);
});

test('a mail about a role explains the role', async () => {
  const made = (await compose(row('role-changed', { detail: 'admin' }))) as { subject: string; text: string };
  expect(made.subject).toBe('You are now an administrator of accounts.test:8443');
  expect(made.text).toContain('You were logged out on all devices.');
  const unmade = (await compose(row('role-changed', { detail: 'user' }))) as { subject: string; text: string };
  expect(unmade.subject).toBe('You are no longer an administrator of accounts.test:8443');
  expect(unmade.text).not.toContain('logged out');
});

test('a mail about a deletion by an administrator or operator says so, and until when it can be undone', async () => {
  const { text } = (await compose(row('account-closed', { detail: '2026-12-06T00:00:00.000Z' }))) as { text: string };
  expect(text).toContain('Your account at accounts.test:8443 was deleted by the operator of the site.');
  expect(text).not.toContain('You asked');
  expect(text).toMatch(/log in by .*6.*2026.* and choose to restore it/s);
});

test('a mail names a provider like the pages', async () => {
  const { text } = (await compose(row('identity-linked', { detail: 'my_company' }))) as { text: string };
  expect(text).toContain('You can now also log in to your account at accounts.test:8443 through My Company');
});

test('a row of the previous release without an address goes to the user’s email', async () => {
  expect(await compose(row('password-changed', { email: '' }))).toMatchObject({
    to: { address: 'stored@example.test' },
  });
  for (const userId of [null, 'user_2'])
    expect(await compose(row('password-changed', { email: '', userId }))).toBeUndefined();
});

test('a mail with a link needs its token: not missing, replaced or deleted', async () => {
  for (const kind of ['verify-email', 'reset-password', 'invitation'] as const) {
    for (const changes of [{ tokenId: null }, { tokenId: 'token-0' }])
      expect(await compose(row(kind, changes))).toBeUndefined();
  }
});

test('a token of another process differs from a deleted one', async () => {
  expect(await compose(row('verify-email', { tokenId: 'token-of-another' }))).toBe('otherKey');
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

test('verification links need an unverified user, reset links any user', () => {
  const user = User.register({ email, name: 'Ada', passwordHash: 'x' });
  const isFor = () =>
    (['verify-email', 'reset-password'] as const).map((kind) => {
      const { link } = mailKinds[kind];
      return link?.source === 'one-time' && link.isFor(user);
    });
  expect(isFor()).toEqual([true, true]);
  user.verifyEmail();
  expect(isFor()).toEqual([false, true]);
});

test('the link of a mail has the token of one source; notices have no link', () => {
  const kindsWith = (source: Link['source']) =>
    mails.flatMap(([kind]) => (mailKinds[kind].link?.source === source ? [kind] : []));
  expect(kindsWith('one-time')).toEqual(['verify-email', 'reset-password']);
  expect(kindsWith('email-change')).toEqual(['confirm-email', 'email-changed']);
  expect(kindsWith('invitation')).toEqual(['invitation']);
});

test('special characters are escaped in HTML', () => {
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

  test('a mail names the brand instead of the host, and ends with its links, before the line for autofill', async () => {
    const mail = (await composeBranded(row('verify-email'))) as { subject: string; text: string };
    expect(mail.subject).toBe(`Verify your email for ${name}`);
    expect(mail.text).toContain(`so that you can log in to ${name}.`);
    const closing = 'The link works once, for 24 hours. If you did not create an account, you can ignore this email.';
    expect(mail.text.slice(mail.text.indexOf(closing))).toBe(`${closing}

Support: help@example.test
Terms of service: https://accounts.test:8443/terms
Privacy policy: https://example.test/privacy

@accounts.test #898374
`);
  });

  test('the HTML has picture, colour and links of the brand, escaped', async () => {
    const { html } = (await composeBranded(row('verify-email'))) as { html: string };
    const escaped = '&quot;Ada&quot; &amp; &lt;Co&gt;';
    expect(html).toContain(`<img src="https://accounts.test:8443/logo.png?a=1&amp;b=2" alt="${escaped}"`);
    expect(html).toContain('background:#0f766e;color:#ffffff');
    for (const { accent } of Object.values(pageColors)) expect(html).not.toContain(accent);
    expect(html).toContain(`.link { color: ${brand.colors?.dark.accent} !important }`);
    expect(html).not.toContain(name);
    const links = [...html.matchAll(/<a href="([^"]*)"[^>]*>([^<]*)<\/a>/g)].map(([, url, label]) => [label, url]);
    expect(links.slice(-3)).toEqual([
      ['Support', 'mailto:help@example.test?subject=Login'],
      ['Terms of service', 'https://accounts.test:8443/terms'],
      ['Privacy policy', 'https://example.test/privacy'],
    ]);
  });
});
