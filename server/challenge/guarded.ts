import type { LimitName } from '../limits/index.ts';

/** The procedures that may demand a challenge, with the limit that decides by its use. All work without a session. */
export const guarded = {
  'auth.register': 'register',
  'auth.login': 'login',
  'account.restore': 'login',
  'auth.forgotPassword': 'mailRequest',
  'auth.resendVerification': 'mailRequest',
  'auth.beginEmailCode': 'mailRequest',
} as const satisfies Record<string, LimitName>;

export type Guarded = keyof typeof guarded;

export const isGuarded = (procedure: string): procedure is Guarded => Object.hasOwn(guarded, procedure);
