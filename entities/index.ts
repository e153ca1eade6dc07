import { IdentitySchema } from './identity.ts';
import { OneTimeTokenSchema } from './one-time-token.ts';
import { OutboxMailSchema } from './outbox-mail.ts';
import { SessionSchema } from './session.ts';
import { UploadSchema, UploadUsageSchema } from './upload.ts';
import { UserSchema } from './user.ts';

export { Identity } from './identity.ts';
export { OneTimeToken } from './one-time-token.ts';
export { type MailState, OutboxMail } from './outbox-mail.ts';
export { afterPrefix, searchKey } from './search-key.ts';
export { Session } from './session.ts';
export { Upload, type UploadPurpose, type UploadState, UploadUsage } from './upload.ts';
export {
  changedProfile,
  type OptionalProfileField,
  optionalProfileFields,
  type ProfileChange,
  type ProfileFields,
  type Role,
  storedProfile,
  User,
} from './user.ts';

/** Every table. The types of queries are derived from this list. */
export const schemas = [
  UserSchema,
  IdentitySchema,
  OneTimeTokenSchema,
  SessionSchema,
  OutboxMailSchema,
  UploadSchema,
  UploadUsageSchema,
];
