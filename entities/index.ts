export { Identity } from './identity.ts';
export { OneTimeToken } from './one-time-token.ts';
export { type MailState, OutboxMail } from './outbox-mail.ts';
export { afterPrefix, searchKey } from './search-key.ts';
export { Upload, type UploadPurpose, type UploadState, UploadUsage } from './upload.ts';
export { type ProfileChange, type Role, User } from './user.ts';
