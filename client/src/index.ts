export type * from './api.ts';
export {
  type ClientOptions,
  createClient,
  createServiceClient,
  type ServiceClientOptions,
} from './client.ts';
export {
  isNetworkError,
  isServiceError,
  isTimeoutError,
  NetworkError,
  ServiceError,
  TimeoutError,
} from './errors.ts';
export { type UploadClient, UploadError, type UploadedFile, type UploadOptions, uploadFile } from './upload.ts';
