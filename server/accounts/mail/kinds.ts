import type { Role, User } from '../../../entities/index.ts';
import type { DetailsOf } from '../../activity/kinds.ts';
import { pagePaths } from '../../shared/page-paths.ts';
import { deviceLabel } from '../../shared/texts/device.ts';
import type { TextKey, TextValues } from '../../shared/texts/template.ts';
import { hasCode } from './code-detail.ts';
import { mailedDevice } from './mailed-devices.ts';
import { fromDetail, type LoginDetail } from './new-device.ts';
import { dayOf, type MailWords, timeOf, waysIn } from './words.ts';

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

/** The detail of a `reset-password` mail after “this was not me”: the password is already disabled. */
export const AFTER_NOT_ME = 'not-me';

/** The names of mail texts: `mails.<name>` has subject, body and closing. */
type TextsIn<Key> = Key extends `mails.${infer Name}.subject` ? Name : never;
type MailTexts = TextsIn<TextKey>;

/** The buttons (labels in `mails.buttons`) and the pages they open; null: the link of the mail. */
export const buttonPages = {
  verifyEmail: null,
  resetPassword: null,
  createAccount: null,
  confirmEmail: null,
  undoChange: null,
  notMe: null,
  logIn: pagePaths.logIn,
  askForPassword: pagePaths.forgotPassword,
  setPassword: pagePaths.forgotPassword,
  setNewPassword: pagePaths.forgotPassword,
  seeWays: pagePaths.security,
  seeWebhooks: pagePaths.webhooks,
  seeApplications: pagePaths.applications,
} as const;

/** The text of a mail. An empty line separates paragraphs of the body. */
export interface Message {
  texts: MailTexts;
  button?: keyof typeof buttonPages;
  /** Whether the mail also lists the login methods other than the password. */
  tellsMethods?: true;
}

/** The purposes of one-time tokens. Mails of several kinds may share one. */
export type TokenPurpose = 'verify-email' | 'reset-password' | 'new-device';

/** The two tokens of an email change. */
export type ChangePurpose = 'confirm-email' | 'email-changed';

/** The link of a mail: which room of `tokens/` stores its token, and the path that it opens. */
export type Link =
  | {
      /** tokens/one-time.ts */
      source: 'one-time';
      purpose: TokenPurpose;
      page(token: string, email: string): string;
      /** Whether a user of the requested address receives the mail. */
      isFor(user: User): boolean;
      /** Whether a later mail renews an unused token instead of replacing it. */
      isShared?: true;
    }
  | {
      /** tokens/email-changes.ts. */
      source: 'email-change';
      purpose: ChangePurpose;
      page(token: string): string;
    }
  | {
      /** tokens/invitations.ts. */
      source: 'invitation';
      page(token: string, email: string): string;
    };

/** What the text of a mail depends on. `hasLink`: false if the owner of the address is only notified. */
interface About<Detail> {
  detail: Detail;
  hasLink: boolean;
}

/** The parameters of `message` and `values` declare the type of the detail. Without them the mail has no detail. */
interface Kind {
  /** How long the mail is useful and its token valid. A report of an act lives a week: mails may wait for days. */
  lifeMs: number;
  /** Sent after links that users wait for, and after warnings. */
  isNotice?: true;
  /** The detail is the hash of a secret: the export leaves it out. */
  isDetailSecret?: true;
  message: Message | ((about: About<never>) => Message);
  /** Text values besides `site`, in the language of the mail. */
  values?(detail: never, words: MailWords): TextValues;
  /** Only for mails with a token. */
  link?: Link;
  /** For mails with a code: the text that introduces it. */
  code?: TextKey;
}

/**
 * The link “this was not me”, in every mail about an act that could give another person access: logins and added login
 * methods. All share one token, so that a second mail does not invalidate the link of the first.
 */
const notMe = {
  lifeMs: 7 * DAY_MS,
  link: {
    source: 'one-time',
    purpose: 'new-device',
    page: (token: string) => `${pagePaths.notMe}?token=${token}`,
    isFor: () => true,
    isShared: true,
  },
} as const;

/** Every kind of mail. A new kind is an entry here and its texts. */
const kinds = {
  'verify-email': {
    lifeMs: 24 * HOUR_MS,
    link: {
      source: 'one-time',
      purpose: 'verify-email',
      page: (token) => `${pagePaths.verifyEmail}?token=${token}`,
      isFor: (user) => !user.emailVerified,
    },
    code: 'mails.verify-email.code',
    message: { texts: 'verify-email', button: 'verifyEmail' },
  },
  // The detail is that of tokens/email-codes.ts.
  'email-code': {
    isDetailSecret: true,
    lifeMs: 10 * 60_000,
    code: 'mails.email-code.code',
    message: ({ detail }: About<string>) =>
      hasCode(detail) ? { texts: 'email-code' } : { texts: 'email-code-nobody', button: 'logIn' },
  },
  'reset-password': {
    lifeMs: HOUR_MS,
    link: {
      source: 'one-time',
      purpose: 'reset-password',
      page: (token, email) => `${pagePaths.resetPassword}?token=${token}&email=${encodeURIComponent(email)}`,
      isFor: () => true,
    },
    message: ({ detail }: About<typeof AFTER_NOT_ME | undefined>) =>
      detail === AFTER_NOT_ME
        ? { texts: 'reset-password-not-me', button: 'resetPassword', tellsMethods: true }
        : { texts: 'reset-password', button: 'resetPassword' },
  },
  invitation: {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    link: {
      source: 'invitation',
      page: (token, email) => `${pagePaths.register}?token=${token}&email=${encodeURIComponent(email)}`,
    },
    message: { texts: 'invitation', button: 'createAccount' },
  },
  'password-changed': {
    lifeMs: 7 * DAY_MS,
    message: ({ detail }: About<DetailsOf<'password-changed'>['by']>) => ({
      texts: detail === 'user' ? 'password-changed-by-user' : 'password-changed',
      button: 'askForPassword',
    }),
  },
  'confirm-email': {
    isDetailSecret: true,
    lifeMs: 24 * HOUR_MS,
    link: {
      source: 'email-change',
      purpose: 'confirm-email',
      page: (token) => `${pagePaths.confirmEmail}?token=${token}`,
    },
    // Contains neither the account nor its address: the user may have mistyped the new one. The detail is the hash of
    // the requesting browser, stored with the token.
    message: ({ hasLink }: About<string>) =>
      hasLink ? { texts: 'confirm-email', button: 'confirmEmail' } : { texts: 'confirm-email-taken', button: 'logIn' },
  },
  'email-changed': {
    lifeMs: 7 * DAY_MS,
    link: {
      source: 'email-change',
      purpose: 'email-changed',
      page: (token) => `${pagePaths.undoEmailChange}?token=${token}`,
    },
    message: { texts: 'email-changed', button: 'undoChange' },
    values: (email: string) => ({ email }),
  },
  'email-change-undone': {
    lifeMs: 7 * DAY_MS,
    message: { texts: 'email-change-undone', button: 'setNewPassword', tellsMethods: true },
    values: (email: string) => ({ email }),
  },
  'new-device': {
    ...notMe,
    message: { texts: 'new-device', button: 'notMe' },
    values(detail: LoginDetail, words) {
      const { at, device, address } = fromDetail(detail);
      return { at: timeOf(at, words), device: deviceLabel(mailedDevice(device), words.write), address };
    },
  },
  'sessions-ended': {
    lifeMs: 7 * DAY_MS,
    message: { texts: 'sessions-ended', button: 'setNewPassword' },
  },
  'login-methods-removed': {
    lifeMs: 7 * DAY_MS,
    message: { texts: 'login-methods-removed', button: 'setPassword' },
    values: (methods: string, words) => ({ ways: waysIn(methods, words) }),
  },
  'account-restored': {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    message: { texts: 'account-restored', button: 'setNewPassword' },
  },
  'account-deleted': {
    lifeMs: 7 * DAY_MS,
    message: { texts: 'account-deleted', button: 'logIn' },
    values: (time: string, words) => ({ day: dayOf(time, words) }),
  },
  'account-closed': {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    message: { texts: 'account-closed', button: 'logIn' },
    values: (time: string, words) => ({ day: dayOf(time, words) }),
  },
  impersonated: {
    lifeMs: 7 * DAY_MS,
    message: { texts: 'impersonated' },
  },
  'account-blocked': {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    message: { texts: 'account-blocked' },
  },
  'account-unblocked': {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    message: { texts: 'account-unblocked', button: 'logIn' },
  },
  'role-changed': {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    message: ({ detail }: About<Role>) => ({ texts: detail === 'admin' ? 'role-changed-to-admin' : 'role-changed' }),
  },
  'identity-linked': {
    ...notMe,
    message: { texts: 'identity-linked', button: 'notMe' },
    values: (methods: string, words) => ({ ways: waysIn(methods, words) }),
  },
  'identity-unlinked': {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    message: { texts: 'identity-unlinked', button: 'seeWays' },
    values: (methods: string, words) => ({ ways: waysIn(methods, words) }),
  },
  'passkey-added': {
    ...notMe,
    message: { texts: 'passkey-added', button: 'notMe' },
  },
  'passkey-removed': {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    message: { texts: 'passkey-removed', button: 'seeWays' },
  },
  'key-created': {
    ...notMe,
    message: { texts: 'key-created', button: 'notMe' },
  },
  'totp-enabled': {
    ...notMe,
    message: { texts: 'totp-enabled', button: 'notMe' },
  },
  'totp-disabled': {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    message: { texts: 'totp-disabled', button: 'seeWays' },
  },
  'recovery-codes-renewed': {
    ...notMe,
    message: { texts: 'recovery-codes-renewed', button: 'notMe' },
  },
  'recovery-code-used': {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    message: { texts: 'recovery-code-used', button: 'seeWays' },
    values: (left: string) => ({ left }),
  },
  'second-factors-removed': {
    lifeMs: 7 * DAY_MS,
    message: { texts: 'second-factors-removed', button: 'setNewPassword' },
  },
  'application-allowed': {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    message: { texts: 'application-allowed', button: 'seeApplications' },
  },
  // Names neither the file nor the finding: its sender chose both.
  'file-quarantined': {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    message: { texts: 'file-quarantined' },
    values: (time: string, words) => ({ day: dayOf(time, words) }),
  },
  // The detail is the host of the webhook: the path of its URL may be a secret.
  'webhook-gone': {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    message: { texts: 'webhook-gone', button: 'seeWebhooks' },
    values: (host: string) => ({ host }),
  },
  'webhook-failing': {
    isNotice: true,
    lifeMs: 7 * DAY_MS,
    message: { texts: 'webhook-failing', button: 'seeWebhooks' },
    values: (host: string) => ({ host }),
  },
} satisfies Record<string, Kind>;

export type MailKind = keyof typeof kinds;

/** The detail of a kind of mail; undefined for a kind without one. */
export type MailDetail<K extends MailKind> = (typeof kinds)[K] extends {
  values(detail: infer Detail, ...rest: never): unknown;
}
  ? Detail
  : (typeof kinds)[K] extends { message(about: About<infer Detail>): unknown }
    ? Detail
    : undefined;

export const mailKinds: Record<MailKind, Kind> = kinds;
