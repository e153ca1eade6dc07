import { untilAborted } from './aborts/until-aborted.ts';
import type { Client, UploadImageOutput } from './api.ts';
import { listeners, type OnProgress } from './progress.ts';

/** The call of a client that uploads an image. */
export interface ImageClient {
  upload: Pick<Client['upload'], 'image'>;
}

export interface ImageOptions {
  /** `avatar`: cropped to a square of 512 pixels; `post`: scaled to fit 1600 by 1600. */
  type: 'avatar' | 'post';
  /** `private`: only addresses of `upload.address` lead to the image, by the returned `name`. `public` without it. */
  visibility?: 'public' | 'private' | undefined;
  /**
   * Called as bytes of the file are sent, with its size as `total`. Without XMLHttpRequest (Node, workers), or with a
   * custom `fetch`: called at the start and at the end.
   */
  onProgress?: OnProgress | undefined;
  /** Aborts the upload; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/**
 * Uploads a JPEG or PNG of at most 5 MB, which the service converts to WebP. The returned `url` can be the profile's
 * `avatar`; it is empty for a private image. Rejects like a call: ServiceError (VALIDATION_FAILED for any other file), NetworkError, TimeoutError.
 */
export async function uploadImage(
  client: ImageClient,
  file: File,
  { type, visibility, onProgress, signal }: ImageOptions,
): Promise<UploadImageOutput> {
  const form = new FormData();
  form.set('file', file);
  form.set('type', type);
  if (visibility) form.set('visibility', visibility);
  const total = file.size;
  if (onProgress) {
    listeners.set(form, (sent) =>
      onProgress({ loaded: Math.round((total * sent.loaded) / Math.max(sent.total, 1)), total }),
    );
  }
  return untilAborted(signal, async (call) => {
    onProgress?.({ loaded: 0, total });
    const image = await client.upload.image.mutate(form, call);
    onProgress?.({ loaded: total, total });
    return image;
  });
}
