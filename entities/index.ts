import { ActivityEventSchema } from './activity-event.ts';
import { ConsentSchema } from './consent.ts';
import { AccessKeySchema } from './credentials/access-key.ts';
import { IdentitySchema } from './credentials/identity.ts';
import { PasskeySchema } from './credentials/passkey.ts';
import { RecoveryCodeSchema, TotpSchema } from './credentials/second-factor.ts';
import { SessionSchema } from './credentials/session.ts';
import { EventSequenceSchema } from './event-sequence.ts';
import { EmailChangeSchema } from './mail/email-change.ts';
import { InvitationSchema } from './mail/invitation.ts';
import { MailTargetSchema } from './mail/mail-target.ts';
import { OneTimeTokenSchema } from './mail/one-time-token.ts';
import { OutboxMailSchema } from './mail/outbox-mail.ts';
import { NameWordSchema } from './name-word.ts';
import { ApplicationSchema, GrantSchema, OAuthArtifactSchema, SigningKeySchema } from './oauth.ts';
import { RemovalSchema } from './removal.ts';
import { SharedLockSchema } from './shared-lock.ts';
import { UniqueValueSchema } from './unique-value.ts';
import { UploadSchema, UploadUsageSchema, UploadVariantSchema } from './upload.ts';
import { UserSchema } from './user.ts';
import { WebhookDeliverySchema, WebhookSchema } from './webhook.ts';

export { ActivityEvent } from './activity-event.ts';
export { Consent } from './consent.ts';
export { AccessKey } from './credentials/access-key.ts';
export { Identity } from './credentials/identity.ts';
export { Passkey } from './credentials/passkey.ts';
export { RecoveryCode, Totp } from './credentials/second-factor.ts';
export { Session } from './credentials/session.ts';
export { EventSequence } from './event-sequence.ts';
export { EmailChange } from './mail/email-change.ts';
export { Invitation } from './mail/invitation.ts';
export { MailTarget } from './mail/mail-target.ts';
export { OneTimeToken } from './mail/one-time-token.ts';
export { type MailState, OutboxMail } from './mail/outbox-mail.ts';
export { NameWord } from './name-word.ts';
export {
  Application,
  type ApplicationKind,
  applicationKinds,
  Grant,
  OAuthArtifact,
  SigningKey,
  type TokenFormat,
  tokenFormats,
} from './oauth.ts';
export { Removal } from './removal.ts';
export { afterPrefix, laterWords, searchKey } from './search-key.ts';
export { SharedLock } from './shared-lock.ts';
export { UniqueValue } from './unique-value.ts';
export {
  avatarVariantsIn,
  imageKeyOf,
  type Scan,
  storedAvatarVariants,
  storedVariants,
  Upload,
  type UploadPurpose,
  type UploadState,
  UploadUsage,
  UploadVariant,
  type Variant,
  variantKey,
  variantsIn,
} from './upload.ts';
export {
  changedProfile,
  type OptionalProfileField,
  optionalProfileFields,
  type ProfileChange,
  type ProfileFields,
  type Role,
  roles,
  User,
} from './user.ts';
export { type DeliveryState, Webhook, WebhookDelivery } from './webhook.ts';

/** Every table. The types of queries are derived from this list. */
export const schemas = [
  UserSchema,
  NameWordSchema,
  UniqueValueSchema,
  MailTargetSchema,
  IdentitySchema,
  OneTimeTokenSchema,
  ConsentSchema,
  EmailChangeSchema,
  InvitationSchema,
  PasskeySchema,
  TotpSchema,
  RecoveryCodeSchema,
  AccessKeySchema,
  SessionSchema,
  ActivityEventSchema,
  EventSequenceSchema,
  OutboxMailSchema,
  UploadSchema,
  UploadVariantSchema,
  UploadUsageSchema,
  RemovalSchema,
  SharedLockSchema,
  WebhookSchema,
  WebhookDeliverySchema,
  ApplicationSchema,
  GrantSchema,
  OAuthArtifactSchema,
  SigningKeySchema,
];
