import type { User } from '../../entities/index.ts';
import { pagePaths } from '../page-paths.ts';
import { readTexts, writer } from '../texts/index.ts';
import { providerLabel } from '../texts/provider-label.ts';
import { fromDetail } from './reported-login.ts';

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

/** The detail of a `reset-password` mail that was not asked for as such: the password is disabled already. */
export const AFTER_NOT_ME = 'not-me';

/** What a mail says. */
export interface MailContent {
  subject: string;
  paragraphs: string[];
  button?: { label: string; url: string };
  closing: string;
}

interface Setting {
  /** What the service is called: APP_NAME, or the host of the public address. */
  site: string;
  appUrl: string;
  /** Of a mail with a token: its page, with the token. Otherwise, and where the owner of the address is only told, empty. */
  link: string;
  detail: string;
}

interface Kind {
  /** How long a mail of this kind is of use, and its token valid. */
  lifeMs: number;
  content(setting: Setting): MailContent;
  /** For a mail with a token, which any caller may request for any address. */
  token?: {
    /** The path that the mailed link opens. */
    page(token: string, email: string): string;
    /** Whether a user of the requested address is mailed. */
    isFor(user: User): boolean;
    /** Whether a later mail has the same token while it is unused, with its life begun anew, rather than one in its place. */
    isShared?: true;
  };
  /** For a mail with a token of a change of address (email-change-rows.ts). */
  changeToken?: { page(token: string): string };
  /** For a mail with the token of an invitation (invitation-rows.ts). */
  invitationToken?: { page(token: string, email: string): string };
}

/** Every kind of mail: a new one is an entry here. */
const kinds = {
  'verify-email': {
    lifeMs: 24 * HOUR_MS,
    token: {
      page: (token) => `${pagePaths.verifyEmail}?token=${token}`,
      isFor: (user) => !user.emailVerified,
    },
    content: ({ site, link }) => ({
      subject: `Verify your email for ${site}`,
      paragraphs: [`Please confirm that this address is yours, so that you can log in to ${site}.`],
      button: { label: 'Verify email', url: link },
      closing: 'The link works once and for 24 hours. If you did not create an account, you can ignore this mail.',
    }),
  },
  'reset-password': {
    lifeMs: HOUR_MS,
    token: {
      page: (token, email) => `${pagePaths.resetPassword}?token=${token}&email=${encodeURIComponent(email)}`,
      isFor: () => true,
    },
    content: ({ site, link, detail }) => ({
      subject: `Reset your password for ${site}`,
      paragraphs:
        detail === AFTER_NOT_ME
          ? [
              `You told us that a login to your account at ${site} was not yours. Every device was logged out, and your former password no longer works.`,
              'Set a new one to log in again.',
            ]
          : [`A new password was asked for, for your account at ${site}.`],
      button: { label: 'Set new password', url: link },
      closing:
        detail === AFTER_NOT_ME
          ? 'The link works once and for one hour. You can ask for another one at the log-in page.'
          : 'The link works once and for one hour. If you did not ask for it, you can ignore this mail: nothing changes.',
    }),
  },
  invitation: {
    lifeMs: 7 * DAY_MS,
    invitationToken: {
      page: (token, email) => `${pagePaths.register}?token=${token}&email=${encodeURIComponent(email)}`,
    },
    content: ({ site, link }) => ({
      subject: `You are invited to ${site}`,
      paragraphs: [`You are invited to create an account at ${site}, with this email.`],
      button: { label: 'Create your account', url: link },
      closing: 'The link works once and for 7 days. If you did not expect it, you can ignore this mail.',
    }),
  },
  'password-changed': {
    lifeMs: 24 * HOUR_MS,
    content: ({ site, appUrl, detail }) => {
      const isByUser = detail === 'user';
      return {
        subject: `Your password for ${site} was changed`,
        paragraphs: [
          `The password of your account at ${site} was just changed, and every ${isByUser ? 'other device' : 'device'} was logged out.`,
          `If that was not you, ask for a new password at once: the person who did it ${isByUser ? 'was logged in to your account' : 'can read your mail'}.`,
        ],
        button: { label: 'Ask for a new password', url: appUrl + pagePaths.forgotPassword },
        closing: 'You need not do anything if you changed it yourself.',
      };
    },
  },
  'confirm-email': {
    lifeMs: 24 * HOUR_MS,
    changeToken: { page: (token) => `${pagePaths.confirmEmail}?token=${token}` },
    // It names neither the account nor its address: the user may have mistyped the new one.
    content: ({ site, link, appUrl }) =>
      link
        ? {
            subject: `Confirm your new email for ${site}`,
            paragraphs: [
              `A user of ${site} wants this to be the email of their account. If that is you, confirm it in a browser in which you are logged in there.`,
            ],
            button: { label: 'Confirm email', url: link },
            closing: 'The link works for 24 hours. If it was not you, you can ignore this mail: nothing happens.',
          }
        : {
            subject: `Your email was given for another account at ${site}`,
            paragraphs: [
              `A user of ${site} wants this to be the email of their account. It belongs to yours already, or did until lately, so nothing has changed.`,
              'If that was you, log in to the account that has this email instead, or change its email first.',
            ],
            button: { label: 'Log in', url: appUrl + pagePaths.logIn },
            closing: 'You need not do anything if it was not you.',
          },
  },
  'email-changed': {
    lifeMs: 7 * DAY_MS,
    changeToken: { page: (token) => `${pagePaths.undoEmailChange}?token=${token}` },
    content: ({ site, link, detail }) => ({
      subject: `The email of your account at ${site} was changed`,
      paragraphs: [
        `The email of your account at ${site} is ${detail} now. You can no longer log in with this one.`,
        'If that was not you, undo it: the account gets this email back, and every device is logged out.',
      ],
      button: { label: 'Undo the change', url: link },
      closing:
        'The link works for 7 days, also after further changes. You need not do anything if you changed it yourself.',
    }),
  },
  'email-change-undone': {
    lifeMs: 24 * HOUR_MS,
    content: ({ site, appUrl, detail }) => ({
      subject: `The email of your account at ${site} was put back`,
      paragraphs: [
        `A change of the email of your account at ${site} was undone: it is ${detail} again. Every device was logged out.`,
        'The person who changed it may know the password, so it no longer works, and neither does what was added to log in with since. Set a new one.',
      ],
      button: { label: 'Set a new password', url: appUrl + pagePaths.forgotPassword },
      closing: 'The link to set it is mailed to that email only.',
    }),
  },
  'new-device': {
    lifeMs: 7 * 24 * HOUR_MS,
    token: {
      page: (token) => `${pagePaths.notMe}?token=${token}`,
      isFor: () => true,
      // Each mail tells of a login of its own: a second one must not void the link of the first.
      isShared: true,
    },
    content: ({ site, link, detail }) => {
      const { at, device, address } = fromDetail(detail);
      return {
        subject: `New login to ${site}`,
        paragraphs: [
          `Your account at ${site} was opened on a device that we have not seen there before:`,
          `${device}, on ${inUtc(at)}, from the address ${address}.`,
          'If it was you, you need not do anything.',
        ],
        button: { label: 'This was not me', url: link },
        closing:
          'The button leads to a page where you can log out every device and have a new password set. The link works once and for 7 days.',
      };
    },
  },
  'login-methods-removed': {
    lifeMs: 24 * HOUR_MS,
    content: ({ site, appUrl, detail }) => ({
      subject: `Ways to log in to ${site} were removed`,
      paragraphs: [
        `Your account at ${site} could also be opened ${inWords(detail)}. We have no proof that you added that yourself, so it was removed, and every device was logged out.`,
        'If it was yours, add it again: ask for a new password, or log in through the provider once more.',
      ],
      button: { label: 'Set a password', url: appUrl + pagePaths.forgotPassword },
      closing: 'You need not do anything if you did not add it.',
    }),
  },
  'account-restored': {
    lifeMs: 7 * DAY_MS,
    content: ({ site, appUrl }) => ({
      subject: `Your account at ${site} was restored`,
      paragraphs: [
        `Your account at ${site} was to be deleted. It was restored just now by a login, and stays.`,
        'If that was not you, set a new password: it ends every session.',
      ],
      button: { label: 'Set a new password', url: appUrl + pagePaths.forgotPassword },
      closing: 'You need not do anything if you restored it yourself.',
    }),
  },
  'account-deleted': {
    lifeMs: 24 * HOUR_MS,
    content: ({ site, appUrl, detail }) => ({
      subject: `Your account at ${site} is being deleted`,
      paragraphs: [
        `You asked to delete your account at ${site}. It is closed now, and every device was logged out.`,
        `If you change your mind, log in by ${dayOf(detail)} and choose to restore it. After that it is removed for good, with everything that is stored about you.`,
        'If it was not you who asked, set a new password first, and then restore the account.',
      ],
      button: { label: 'Log in', url: appUrl + pagePaths.logIn },
      closing: 'You need not do anything if you want it to be removed.',
    }),
  },
  'account-closed': {
    lifeMs: 7 * DAY_MS,
    content: ({ site, appUrl, detail }) => ({
      subject: `Your account at ${site} is being deleted`,
      paragraphs: [
        `Your account at ${site} was deleted by the people who run the site. It is closed now, and every device was logged out.`,
        `If you want to keep it, log in by ${dayOf(detail)} and choose to restore it. After that it is removed for good, with everything that is stored about you.`,
      ],
      button: { label: 'Log in', url: appUrl + pagePaths.logIn },
      closing: 'You need not do anything if you want it to be removed.',
    }),
  },
  'account-blocked': {
    lifeMs: 7 * DAY_MS,
    content: ({ site }) => ({
      subject: `Your account at ${site} is blocked`,
      paragraphs: [
        `Your account at ${site} was blocked. Every device was logged out, and it cannot be opened until it is unblocked.`,
        'Everything that is stored about you is kept.',
      ],
      closing: 'If you do not know why, ask the people who run the site.',
    }),
  },
  'account-unblocked': {
    lifeMs: 7 * DAY_MS,
    content: ({ site, appUrl }) => ({
      subject: `Your account at ${site} is no longer blocked`,
      paragraphs: [`Your account at ${site} was unblocked: you can log in again.`],
      button: { label: 'Log in', url: appUrl + pagePaths.logIn },
      closing: 'Your account is as it was before it was blocked.',
    }),
  },
  'role-changed': {
    lifeMs: 7 * DAY_MS,
    content: ({ site, detail }) => ({
      subject:
        detail === 'admin' ? `You are an administrator of ${site}` : `You are no longer an administrator of ${site}`,
      paragraphs:
        detail === 'admin'
          ? [
              `You have been made an administrator of ${site}: you can see the accounts of all users, and block or delete them. Every device was logged out.`,
            ]
          : [`Your account at ${site} is that of an ordinary user from now on.`],
      closing: 'If you do not know why, ask the people who run the site.',
    }),
  },
  'identity-linked': {
    lifeMs: 24 * HOUR_MS,
    content: ({ site, appUrl, detail }) => ({
      subject: `A new way to log in to ${site}`,
      paragraphs: [
        `Your account at ${site} can now be opened ${inWords(detail)} too.`,
        'If that was not you, remove it from your account, and ask for a new password.',
      ],
      button: { label: 'See how you log in', url: appUrl + pagePaths.security },
      closing: 'You need not do anything if you added it yourself.',
    }),
  },
  'identity-unlinked': {
    lifeMs: 24 * HOUR_MS,
    content: ({ site, appUrl, detail }) => ({
      subject: `A way to log in to ${site} was removed`,
      paragraphs: [
        `Your account at ${site} can no longer be opened ${inWords(detail)}, and the other devices that were logged in that way are logged out.`,
        'If that was not you, ask for a new password at once.',
      ],
      button: { label: 'See how you log in', url: appUrl + pagePaths.security },
      closing: 'You need not do anything if you removed it yourself.',
    }),
  },
  'passkey-added': {
    lifeMs: 24 * HOUR_MS,
    content: ({ site, appUrl, detail }) => ({
      subject: `A new passkey for ${site}`,
      paragraphs: [
        `Your account at ${site} can now be opened by the passkey “${detail}” too.`,
        'If that was not you, remove it from your account, and ask for a new password.',
      ],
      button: { label: 'See how you log in', url: appUrl + pagePaths.security },
      closing: 'You need not do anything if you added it yourself.',
    }),
  },
  'passkey-removed': {
    lifeMs: 24 * HOUR_MS,
    content: ({ site, appUrl, detail }) => ({
      subject: `A passkey for ${site} was removed`,
      paragraphs: [
        `Your account at ${site} can no longer be opened by the passkey “${detail}”, and the other devices that were logged in by a passkey are logged out.`,
        'If that was not you, ask for a new password at once.',
      ],
      button: { label: 'See how you log in', url: appUrl + pagePaths.security },
      closing: 'You need not do anything if you removed it yourself.',
    }),
  },
  'totp-enabled': {
    lifeMs: 24 * HOUR_MS,
    content: ({ site, appUrl }) => ({
      subject: `Codes are asked for at ${site} from now on`,
      paragraphs: [
        `Whoever logs in to your account at ${site} is asked for a code of the authenticator app that was just set up.`,
        'If that was not you, ask for a new password at once, and tell the people who run the site: they can turn it off.',
      ],
      button: { label: 'See how you log in', url: appUrl + pagePaths.security },
      closing: 'You need not do anything if you set it up yourself.',
    }),
  },
  'totp-disabled': {
    lifeMs: 24 * HOUR_MS,
    content: ({ site, appUrl }) => ({
      subject: `Codes are no longer asked for at ${site}`,
      paragraphs: [
        `Whoever logs in to your account at ${site} is no longer asked for a code of an authenticator app. The recovery codes are void.`,
        'If that was not you, ask for a new password at once.',
      ],
      button: { label: 'See how you log in', url: appUrl + pagePaths.security },
      closing: 'You need not do anything if you turned it off yourself.',
    }),
  },
  'recovery-codes-renewed': {
    lifeMs: 24 * HOUR_MS,
    content: ({ site, appUrl }) => ({
      subject: `New recovery codes for ${site}`,
      paragraphs: [
        `New recovery codes were made for your account at ${site}. The former ones no longer work.`,
        'If that was not you, set a new password at once, and then make new codes yourself.',
      ],
      button: { label: 'See how you log in', url: appUrl + pagePaths.security },
      closing: 'You need not do anything if you made them yourself.',
    }),
  },
  'recovery-code-used': {
    lifeMs: 7 * DAY_MS,
    content: ({ site, appUrl, detail }) => ({
      subject: `A recovery code was used at ${site}`,
      paragraphs: [
        `Your account at ${site} was just opened with a recovery code, in place of a code of your authenticator app. Unused ones left: ${detail}.`,
        'If that was not you, set a new password at once, and then have new recovery codes made.',
      ],
      button: { label: 'See how you log in', url: appUrl + pagePaths.security },
      closing: 'You need not do anything if you used it yourself, while some are left.',
    }),
  },
  'second-factors-removed': {
    lifeMs: 7 * DAY_MS,
    content: ({ site, appUrl }) => ({
      subject: `Codes are no longer asked for at ${site}`,
      paragraphs: [
        `An administrator of ${site} has removed the authenticator app and the recovery codes of your account, so that you can log in without them.`,
        'If you did not ask for that, set a new password at once, and tell the people who run the site.',
      ],
      button: { label: 'Set a new password', url: appUrl + pagePaths.forgotPassword },
      closing: 'You can set up an authenticator app again at any time.',
    }),
  },
} satisfies Record<string, Kind>;

export type MailKind = keyof typeof kinds;

/** The kinds of mail with a token. A token's purpose is the kind of its mail. */
export type TokenPurpose = { [K in MailKind]: (typeof kinds)[K] extends { token: object } ? K : never }[MailKind];

/** The kinds of mail with a token of a change of address. */
export type ChangePurpose = {
  [K in MailKind]: (typeof kinds)[K] extends { changeToken: object } ? K : never;
}[MailKind];

export const mailKinds: Record<MailKind, Kind> = kinds;

export const isChangePurpose = (kind: MailKind): kind is ChangePurpose => mailKinds[kind].changeToken !== undefined;

export const isInvitation = (kind: MailKind): boolean => mailKinds[kind].invitationToken !== undefined;

export const isTokenPurpose = (kind: MailKind): kind is TokenPurpose => mailKinds[kind].token !== undefined;

/** `2026-11-22 14:05 UTC`. */
export const inUtc = (msecs: number): string => `${new Date(msecs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
/** The day of a time in ISO 8601, by UTC: `6 December 2026`. */
const dayOf = (time: string): string =>
  new Date(time).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

const ownMethods: Record<string, string> = {
  password: 'by a password',
  passkey: 'by a passkey',
  totp: 'with the codes of an authenticator app',
  recovery: 'with recovery codes',
};

/** `password,github` in plain words: `by a password and through GitHub`. */
const inWords = (methods: string): string =>
  methods
    .split(',')
    .map((method) => ownMethods[method] ?? `through ${providerLabel(method, writer(readTexts(undefined), 'en'))}`)
    .join(' and ');
