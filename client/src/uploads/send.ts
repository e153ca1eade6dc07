import { within } from '../aborts/deadline.ts';
import { reasonOf, throwIfAborted } from '../aborts/until-aborted.ts';
import { NetworkError, TimeoutError } from '../errors.ts';

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

export interface SendOptions {
  /** Without progress, until it times out. Fetch reports none: there it is added to the time at `MIN_PACE`. */
  ms: number;
  onSent?: ((bytes: number) => void) | undefined;
  signal?: AbortSignal | undefined;
  /** Instead of XMLHttpRequest or the global fetch. */
  fetch?: typeof globalThis.fetch | undefined;
}

/** Bytes per second that the service demands of an upload. */
const MIN_PACE = 20_000;
const tooLate = 'The file could not be sent in time';

/** PUTs bytes, with their type if they have one. Rejects with UploadError, NetworkError or TimeoutError. */
export async function send(address: string, bytes: Blob, options: SendOptions): Promise<void> {
  const way = options.fetch === undefined && 'XMLHttpRequest' in globalThis ? sendWithProgress : sendByFetch;
  const status = await way(address, bytes, options);
  if (status < 200 || status >= 300) throw new UploadError(status);
}

type Send = (address: string, bytes: Blob, options: SendOptions) => Promise<number>;

/** In browsers only XMLHttpRequest reports upload progress. */
const sendWithProgress: Send = (address, bytes, { ms, onSent, signal }) =>
  new Promise((resolve, reject) => {
    throwIfAborted(signal);
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        reject(new TimeoutError(tooLate));
        abort();
      }, ms);
    };
    request.open('PUT', address);
    if (bytes.type) request.setRequestHeader('Content-Type', bytes.type);
    request.upload.onprogress = ({ loaded }) => {
      wait();
      onSent?.(loaded);
    };
    request.onload = () => resolve(request.status);
    request.onerror = () => reject(new NetworkError('The file could not be sent'));
    request.onabort = () => reject(reasonOf(signal));
    request.onloadend = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    };
    signal?.addEventListener('abort', abort);
    wait();
    request.send(bytes);
  });

const sendByFetch: Send = (address, bytes, { ms, fetch = globalThis.fetch, signal: ofCaller }) =>
  within({ ms: ms + (bytes.size / MIN_PACE) * 1000, signal: ofCaller }, async (signal) => {
    const headers: HeadersInit = bytes.type ? { 'Content-Type': bytes.type } : {};
    const response = await fetch(address, { method: 'PUT', headers, body: bytes, signal });
    await response.body?.cancel();
    return response.status;
  }).catch((error: unknown) => {
    throwIfAborted(ofCaller);
    const origin = error instanceof Error ? { cause: error } : {};
    throw origin.cause?.name === 'TimeoutError'
      ? new TimeoutError(tooLate, origin)
      : new NetworkError('The file could not be sent', origin);
  });
