export type * from './api.ts';
export type { OnChallenge } from './challenge/on-challenge.ts';
export {
  type ClientOptions,
  createClient,
  createServiceClient,
  type ServiceClientOptions,
} from './client.ts';
export { type CookieJar, type CookieJarOptions, cookieJar, type SavedCookie } from './cookie-jar.ts';
export {
  isNetworkError,
  isServiceError,
  isTimeoutError,
  NetworkError,
  ServiceError,
  TimeoutError,
} from './errors.ts';
export { type FollowOptions, followEvents } from './follow-events.ts';
export { type ImageClient, type ImageOptions, uploadImage } from './image.ts';
export { type PasswordRule, passwordRules } from './password-rules.ts';
export { type PictureVariant, placeholderUrl, type SizedPicture, srcSet } from './pictures.ts';
export {
  bearerTokenIn,
  createSessionChecker,
  type SessionChecker,
  type SessionCheckerOptions,
  sessionTokenIn,
} from './session-checker.ts';
export {
  type UnfinishedUpload,
  type UploadClient,
  UploadError,
  type UploadedFile,
  type UploadOptions,
  uploadFile,
} from './uploads/upload.ts';
export { type VerifiedWebhook, verifyWebhook, WebhookError, type WebhookRequest } from './webhooks.ts';
