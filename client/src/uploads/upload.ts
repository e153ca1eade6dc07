import { throwIfAborted, untilAborted } from '../aborts/until-aborted.ts';
import { isServiceError } from '../errors.ts';
import { sendInParts, type UploadClient, type UploadedFile, type UploadOptions } from './parts.ts';
import { send } from './send.ts';

export type { UnfinishedUpload, UploadClient, UploadedFile, UploadOptions } from './parts.ts';
export { UploadError } from './send.ts';

/**
 * Uploads a file directly to the storage: requests a URL, sends the file there, and lets the service check it. A file
 * above 100 MB is sent in parts, four at once; a part is sent again after a lost connection. Rejects with ServiceError
 * if the service refuses (no session, type or size not allowed), UploadError if the storage does, and NetworkError or
 * TimeoutError if no response arrives.
 */
export const uploadFile = (client: UploadClient, file: File, options: UploadOptions = {}): Promise<UploadedFile> =>
  untilAborted(options.signal, (call) => upload(client, file, options, call));

async function upload(
  client: UploadClient,
  file: File,
  options: UploadOptions,
  call: { signal?: AbortSignal },
): Promise<UploadedFile> {
  const { signal, onProgress, onStart, fetch, visibility = 'public' } = options;
  const resumed = await resume(client, file, options, call);
  if (resumed) return resumed;
  const { name, type, size: total, lastModified } = file;
  const { presignedUrl, publicUrl, key, expiresIn, parts } = await client.upload.presign.mutate(
    { filename: name, contentType: type, size: total, visibility },
    call,
  );
  throwIfAborted(signal);
  if (parts) {
    onStart?.({ key, url: publicUrl, name, type, size: total, lastModified });
    return sendInParts(client, file, { key, url: publicUrl, ...parts, stored: [] }, options);
  }
  onProgress?.({ loaded: 0, total });
  const onSent = (loaded: number) => onProgress?.({ loaded, total });
  await send(presignedUrl, file, { ms: expiresIn * 1000, onSent, signal, fetch });
  onSent(total);
  const { contentType, size } = await client.upload.confirm.mutate({ key }, call);
  return { key, url: publicUrl, contentType, size };
}

/** Undefined if there is nothing to resume. Also finds an upload that was completed without the page learning of it. */
async function resume(
  client: UploadClient,
  file: File,
  options: UploadOptions,
  call: { signal?: AbortSignal },
): Promise<UploadedFile | undefined> {
  const { resume: unfinished } = options;
  const isSame = (['name', 'type', 'size', 'lastModified'] as const).every(
    (field) => unfinished?.[field] === file[field],
  );
  if (!unfinished || !isSame) return undefined;
  const { key, url } = unfinished;
  const completed = await orRefused(client.upload.complete.mutate({ key }, call));
  if (completed) return { key, url, contentType: completed.contentType, size: completed.size };
  const parts = await orRefused(client.upload.parts.query({ key }, call));
  return parts && sendInParts(client, file, { key, url, ...parts }, options);
}

/** Undefined if a part is missing, or the upload has expired. */
const orRefused = <T>(work: Promise<T>): Promise<T | undefined> =>
  work.catch((error: unknown) => {
    if (isServiceError(error, 'VALIDATION_FAILED') || isServiceError(error, 'NOT_FOUND')) return undefined;
    throw error;
  });
