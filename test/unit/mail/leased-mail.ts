import type { LeasedMail } from '../../../server/accounts/mail/outbox-rows.ts';

/** A mail leased by this process, before its first attempt. */
export const leasedMail = (changes: Partial<LeasedMail> = {}): LeasedMail => ({
  id: 'mail-1',
  kind: 'verify-email',
  email: 'ada@example.test',
  userId: 'user_1',
  tokenId: 'token-1',
  detail: null,
  traceparent: null,
  language: null,
  attempts: 0,
  expired: false,
  isNew: false,
  ...changes,
});
