import { ActivityEventSchema } from './activity-event.ts';
import { ConsentSchema } from './consent.ts';
import { EmailChangeSchema } from './email-change.ts';
import { IdentitySchema } from './identity.ts';
import { InvitationSchema } from './invitation.ts';
import { OneTimeTokenSchema } from './one-time-token.ts';
import { OutboxMailSchema } from './outbox-mail.ts';
import { PasskeySchema } from './passkey.ts';
import { RemovalSchema } from './removal.ts';
import { RecoveryCodeSchema, TotpSchema } from './second-factor.ts';
import { SessionSchema } from './session.ts';
import { SharedLockSchema } from './shared-lock.ts';
import { UploadSchema, UploadUsageSchema } from './upload.ts';
import { UserSchema } from './user.ts';

export { ActivityEvent } from './activity-event.ts';
export { Consent } from './consent.ts';
export { EmailChange } from './email-change.ts';
export { Identity } from './identity.ts';
export { Invitation } from './invitation.ts';
export { OneTimeToken } from './one-time-token.ts';
export { type MailState, OutboxMail } from './outbox-mail.ts';
export { Passkey } from './passkey.ts';
export { Removal } from './removal.ts';
export { afterPrefix, searchKey } from './search-key.ts';
export { RecoveryCode, Totp } from './second-factor.ts';
export { Session } from './session.ts';
export { SharedLock } from './shared-lock.ts';
export { Upload, type UploadPurpose, type UploadState, UploadUsage } from './upload.ts';
export {
  changedProfile,
  type OptionalProfileField,
  optionalProfileFields,
  type ProfileChange,
  type ProfileFields,
  type Role,
  roles,
  storedProfile,
  User,
} from './user.ts';

/** Every table. The types of queries are derived from this list. */
export const schemas = [
  UserSchema,
  IdentitySchema,
  OneTimeTokenSchema,
  ConsentSchema,
  EmailChangeSchema,
  InvitationSchema,
  PasskeySchema,
  TotpSchema,
  RecoveryCodeSchema,
  SessionSchema,
  ActivityEventSchema,
  OutboxMailSchema,
  UploadSchema,
  UploadUsageSchema,
  RemovalSchema,
  SharedLockSchema,
];
