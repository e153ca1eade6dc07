import type { User } from '../../entities/index.ts';
import { pagePaths } from '../page-paths.ts';
import { deviceLabel } from '../texts/device.ts';
import type { TextKey, TextValues } from '../texts/template.ts';
import { dayOf, type MailWords, timeOf, waysIn } from './mail-words.ts';
import { fromDetail } from './reported-login.ts';

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

/** The detail of a `reset-password` mail that was not asked for as such: the password is disabled already. */
export const AFTER_NOT_ME = 'not-me';

/** The names of the texts of mails: `mails.<name>` has subject, body and closing. */
type TextsIn<Key> = Key extends `mails.${infer Name}.subject` ? Name : never;
type MailTexts = TextsIn<TextKey>;

/** The buttons, whose labels are the texts `mails.buttons`, and the pages that they open; null: the mail's own link. */
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
} as const;

/** What a mail says. The body has an empty line between its paragraphs. */
interface Message {
  texts: MailTexts;
  button?: keyof typeof buttonPages;
}

interface Kind {
  /** How long a mail of this kind is of use, and its token valid. */
  lifeMs: number;
  /** `hasLink`: false where the owner of the address is only told. */
  message: Message | ((mail: { detail: string; hasLink: boolean }) => Message);
  /** The values of its texts beside `site`, in the language of the mail. */
  values?(detail: string, words: MailWords): TextValues;
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

/** Every kind of mail: a new one is an entry here, and its texts. */
const kinds = {
  'verify-email': {
    lifeMs: 24 * HOUR_MS,
    token: {
      page: (token) => `${pagePaths.verifyEmail}?token=${token}`,
      isFor: (user) => !user.emailVerified,
    },
    message: { texts: 'verify-email', button: 'verifyEmail' },
  },
  'reset-password': {
    lifeMs: HOUR_MS,
    token: {
      page: (token, email) => `${pagePaths.resetPassword}?token=${token}&email=${encodeURIComponent(email)}`,
      isFor: () => true,
    },
    message: ({ detail }) => ({
      texts: detail === AFTER_NOT_ME ? 'reset-password-not-me' : 'reset-password',
      button: 'resetPassword',
    }),
  },
  invitation: {
    lifeMs: 7 * DAY_MS,
    invitationToken: {
      page: (token, email) => `${pagePaths.register}?token=${token}&email=${encodeURIComponent(email)}`,
    },
    message: { texts: 'invitation', button: 'createAccount' },
  },
  'password-changed': {
    lifeMs: 24 * HOUR_MS,
    message: ({ detail }) => ({
      texts: detail === 'user' ? 'password-changed-by-user' : 'password-changed',
      button: 'askForPassword',
    }),
  },
  'confirm-email': {
    lifeMs: 24 * HOUR_MS,
    changeToken: { page: (token) => `${pagePaths.confirmEmail}?token=${token}` },
    // It names neither the account nor its address: the user may have mistyped the new one.
    message: ({ hasLink }) =>
      hasLink ? { texts: 'confirm-email', button: 'confirmEmail' } : { texts: 'confirm-email-taken', button: 'logIn' },
  },
  'email-changed': {
    lifeMs: 7 * DAY_MS,
    changeToken: { page: (token) => `${pagePaths.undoEmailChange}?token=${token}` },
    message: { texts: 'email-changed', button: 'undoChange' },
    values: (email) => ({ email }),
  },
  'email-change-undone': {
    lifeMs: 24 * HOUR_MS,
    message: { texts: 'email-change-undone', button: 'setNewPassword' },
    values: (email) => ({ email }),
  },
  'new-device': {
    lifeMs: 7 * DAY_MS,
    token: {
      page: (token) => `${pagePaths.notMe}?token=${token}`,
      isFor: () => true,
      // Each mail tells of a login of its own: a second one must not void the link of the first.
      isShared: true,
    },
    message: { texts: 'new-device', button: 'notMe' },
    values(detail, words) {
      const { at, device, address } = fromDetail(detail);
      return { at: timeOf(at, words), device: deviceLabel(device, words.write), address };
    },
  },
  'login-methods-removed': {
    lifeMs: 24 * HOUR_MS,
    message: { texts: 'login-methods-removed', button: 'setPassword' },
    values: (methods, words) => ({ ways: waysIn(methods, words) }),
  },
  'account-restored': {
    lifeMs: 7 * DAY_MS,
    message: { texts: 'account-restored', button: 'setNewPassword' },
  },
  'account-deleted': {
    lifeMs: 24 * HOUR_MS,
    message: { texts: 'account-deleted', button: 'logIn' },
    values: (time, words) => ({ day: dayOf(time, words) }),
  },
  'account-closed': {
    lifeMs: 7 * DAY_MS,
    message: { texts: 'account-closed', button: 'logIn' },
    values: (time, words) => ({ day: dayOf(time, words) }),
  },
  'account-blocked': {
    lifeMs: 7 * DAY_MS,
    message: { texts: 'account-blocked' },
  },
  'account-unblocked': {
    lifeMs: 7 * DAY_MS,
    message: { texts: 'account-unblocked', button: 'logIn' },
  },
  'role-changed': {
    lifeMs: 7 * DAY_MS,
    message: ({ detail }) => ({ texts: detail === 'admin' ? 'role-changed-to-admin' : 'role-changed' }),
  },
  'identity-linked': {
    lifeMs: 24 * HOUR_MS,
    message: { texts: 'identity-linked', button: 'seeWays' },
    values: (methods, words) => ({ ways: waysIn(methods, words) }),
  },
  'identity-unlinked': {
    lifeMs: 24 * HOUR_MS,
    message: { texts: 'identity-unlinked', button: 'seeWays' },
    values: (methods, words) => ({ ways: waysIn(methods, words) }),
  },
  'passkey-added': {
    lifeMs: 24 * HOUR_MS,
    message: { texts: 'passkey-added', button: 'seeWays' },
    values: (name) => ({ name }),
  },
  'passkey-removed': {
    lifeMs: 24 * HOUR_MS,
    message: { texts: 'passkey-removed', button: 'seeWays' },
    values: (name) => ({ name }),
  },
  'totp-enabled': {
    lifeMs: 24 * HOUR_MS,
    message: { texts: 'totp-enabled', button: 'seeWays' },
  },
  'totp-disabled': {
    lifeMs: 24 * HOUR_MS,
    message: { texts: 'totp-disabled', button: 'seeWays' },
  },
  'recovery-codes-renewed': {
    lifeMs: 24 * HOUR_MS,
    message: { texts: 'recovery-codes-renewed', button: 'seeWays' },
  },
  'recovery-code-used': {
    lifeMs: 7 * DAY_MS,
    message: { texts: 'recovery-code-used', button: 'seeWays' },
    values: (left) => ({ left }),
  },
  'second-factors-removed': {
    lifeMs: 7 * DAY_MS,
    message: { texts: 'second-factors-removed', button: 'setNewPassword' },
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
