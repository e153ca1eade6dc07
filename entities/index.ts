import { AccessKeySchema } from './access-key.ts';
import { ActivityEventSchema } from './activity-event.ts';
import { ConsentSchema } from './consent.ts';
import { EmailChangeSchema } from './email-change.ts';
import { EventSequenceSchema } from './event-sequence.ts';
import { IdentitySchema } from './identity.ts';
import { InvitationSchema } from './invitation.ts';
import { MailTargetSchema } from './mail-target.ts';
import { NameWordSchema } from './name-word.ts';
import { ApplicationSchema, GrantSchema, OAuthArtifactSchema, SigningKeySchema } from './oauth.ts';
import { OneTimeTokenSchema } from './one-time-token.ts';
import { OutboxMailSchema } from './outbox-mail.ts';
import { PasskeySchema } from './passkey.ts';
import { RemovalSchema } from './removal.ts';
import { RecoveryCodeSchema, TotpSchema } from './second-factor.ts';
import { SessionSchema } from './session.ts';
import { SharedLockSchema } from './shared-lock.ts';
import { UploadSchema, UploadUsageSchema, UploadVariantSchema } from './upload.ts';
import { UserSchema } from './user.ts';
import { WebhookDeliverySchema, WebhookSchema } from './webhook.ts';

export { AccessKey } from './access-key.ts';
export { ActivityEvent } from './activity-event.ts';
export { Consent } from './consent.ts';
export { EmailChange } from './email-change.ts';
export { EventSequence } from './event-sequence.ts';
export { Identity } from './identity.ts';
export { Invitation } from './invitation.ts';
export { MailTarget } from './mail-target.ts';
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
export { OneTimeToken } from './one-time-token.ts';
export { type MailState, OutboxMail } from './outbox-mail.ts';
export { Passkey } from './passkey.ts';
export { Removal } from './removal.ts';
export { afterPrefix, laterWords, searchKey } from './search-key.ts';
export { RecoveryCode, Totp } from './second-factor.ts';
export { Session } from './session.ts';
export { SharedLock } from './shared-lock.ts';
export {
  avatarVariantsIn,
  imageKeyOf,
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
