import type { User } from '../../entities/index.ts';
import { pagePaths } from '../page-paths.ts';

const HOUR_MS = 60 * 60_000;

/** What a mail says. */
export interface MailContent {
  subject: string;
  paragraphs: string[];
  button?: { label: string; url: string };
  closing: string;
}

interface Setting {
  /** Host of the public address. */
  site: string;
  appUrl: string;
  /** Of a mail with a token: its page, with the token. Otherwise empty. */
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
  };
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
    content: ({ site, link }) => ({
      subject: `Reset your password for ${site}`,
      paragraphs: [`A new password was asked for, for your account at ${site}.`],
      button: { label: 'Set new password', url: link },
      closing:
        'The link works once and for one hour. If you did not ask for it, you can ignore this mail: your password stays.',
    }),
  },
  'password-changed': {
    lifeMs: 24 * HOUR_MS,
    content: ({ site }) => ({
      subject: `Your password for ${site} was changed`,
      paragraphs: [
        `The password of your account at ${site} was just changed, and every device was logged out.`,
        'If that was not you, ask for a new password at once: the person who did it can read your mail.',
      ],
      closing: 'You need not do anything if you changed it yourself.',
    }),
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
} satisfies Record<string, Kind>;

export type MailKind = keyof typeof kinds;

/** The kinds of mail with a token. A token's purpose is the kind of its mail. */
export type TokenPurpose = { [K in MailKind]: (typeof kinds)[K] extends { token: object } ? K : never }[MailKind];

export const mailKinds: Record<MailKind, Kind> = kinds;

export const isTokenPurpose = (kind: MailKind): kind is TokenPurpose => mailKinds[kind].token !== undefined;

/** `password,github` in plain words. */
const inWords = (methods: string): string =>
  methods
    .split(',')
    .map((method) => (method === 'password' ? 'by a password' : `through ${method}`))
    .join(' and ');
