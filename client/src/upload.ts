import type { Client } from './api.ts';
import { NetworkError, TimeoutError } from './errors.ts';

/** The two calls of a client that an upload makes. */
export interface UploadClient {
  upload: Pick<Client['upload'], 'presign' | 'confirm'>;
}

export interface UploadOptions {
  /** `private`: only addresses of `upload.address` lead to the file. `public` without it. */
  visibility?: 'public' | 'private' | undefined;
  /** Called as bytes are sent. Without XMLHttpRequest (Node, workers): at the start and at the end. */
  onProgress?: ((progress: { loaded: number; total: number }) => void) | undefined;
  /** Aborts the upload; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Sends the file, instead of XMLHttpRequest or the global fetch. */
  fetch?: typeof globalThis.fetch | undefined;
}

/** A stored file, as declared. */
export interface UploadedFile {
  key: string;
  /** Its public URL; empty for a private file. */
  url: string;
  contentType: string;
  size: number;
}

/** The storage refused the file: the URL has expired, or the file changed during the upload. */
export class UploadError extends Error {
  /** The HTTP status of the storage. */
  readonly status: number;

  constructor(status: number) {
    super(`The storage refused the file (HTTP ${status})`);
    this.name = 'UploadError';
    this.status = status;
  }
}

/**
 * Uploads a file directly to the storage: requests a URL, sends the file there, and lets the service check it. Rejects
 * with ServiceError if the service refuses (no session, type or size not allowed), UploadError if the storage does,
 * and NetworkError or TimeoutError if no response arrives.
 */
export async function uploadFile(client: UploadClient, file: File, options: UploadOptions = {}): Promise<UploadedFile> {
  const { signal, onProgress, visibility = 'public' } = options;
  const call = signal ? { signal } : {};
  const { presignedUrl, publicUrl, key, expiresIn } = await client.upload.presign.mutate(
    { filename: file.name, contentType: file.type, size: file.size, visibility },
    call,
  );
  signal?.throwIfAborted();
  const send = options.fetch === undefined && 'XMLHttpRequest' in globalThis ? sendWithProgress : sendByFetch;
  onProgress?.({ loaded: 0, total: file.size });
  const status = await send(presignedUrl, file, expiresIn * 1000, options);
  if (status < 200 || status >= 300) throw new UploadError(status);
  onProgress?.({ loaded: file.size, total: file.size });
  const { contentType, size } = await client.upload.confirm.mutate({ key }, call);
  return { key, url: publicUrl, contentType, size };
}

/** PUTs the file and resolves to the status; times out when the URL expires. */
type Send = (address: string, file: File, ms: number, options: UploadOptions) => Promise<number>;

/** In browsers only XMLHttpRequest reports upload progress. */
const sendWithProgress: Send = (address, file, ms, { onProgress, signal }) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    request.open('PUT', address);
    request.setRequestHeader('Content-Type', file.type);
    request.timeout = ms;
    request.upload.onprogress = ({ loaded }) => onProgress?.({ loaded, total: file.size });
    request.onload = () => resolve(request.status);
    request.onerror = () => reject(new NetworkError('The file could not be sent'));
    request.ontimeout = () => reject(new TimeoutError('The file could not be sent in time'));
    request.onabort = () => reject(signal?.reason);
    request.onloadend = () => signal?.removeEventListener('abort', abort);
    signal?.addEventListener('abort', abort);
    request.send(file);
  });

const sendByFetch: Send = async (address, file, ms, { fetch = globalThis.fetch, signal }) => {
  const timer = AbortSignal.timeout(ms);
  try {
    const response = await fetch(address, {
      method: 'PUT',
      headers: { 'Content-Type': file.type },
      body: file,
      signal: signal ? AbortSignal.any([signal, timer]) : timer,
    });
    await response.body?.cancel();
    return response.status;
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    const origin = error instanceof Error ? { cause: error } : {};
    throw timer.aborted
      ? new TimeoutError('The file could not be sent in time', origin)
      : new NetworkError('The file could not be sent', origin);
  }
};
