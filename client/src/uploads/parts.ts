import { following } from '../aborts/deadline.ts';
import { reasonOf, throwIfAborted } from '../aborts/until-aborted.ts';
import type { Client, UploadPartsOutput } from '../api.ts';
import { isServiceError } from '../errors.ts';
import { isPassing, pauseAfter } from '../retries.ts';
import { send, UploadError } from './send.ts';

/** The calls of a client that an upload makes. */
export interface UploadClient {
  upload: Pick<Client['upload'], 'presign' | 'confirm' | 'parts' | 'presignParts' | 'complete' | 'remove'>;
}

export interface UploadOptions {
  /** `private`: only addresses of `upload.address` lead to the file. `public` without it. */
  visibility?: 'public' | 'private' | undefined;
  /**
   * Called as bytes are sent. Without XMLHttpRequest (Node, workers): at the start, after each part of a large file, and at
   * the end. `loaded` decreases when a part is sent again.
   */
  onProgress?: ((progress: { loaded: number; total: number }) => void) | undefined;
  /** Aborts the upload and deletes its parts; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Sends the file, instead of XMLHttpRequest or the global fetch. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Called before a file above 100 MB is sent: store this until the upload has ended, and pass it as `resume` later. */
  onStart?: ((unfinished: UnfinishedUpload) => void) | undefined;
  /** Sends only what is missing of an upload that began up to 24 hours ago. Ignored if it was of another file, or expired. */
  resume?: UnfinishedUpload | undefined;
}

/** JSON: the upload, and the file that it is of. */
export interface UnfinishedUpload {
  key: string;
  url: string;
  name: string;
  type: string;
  size: number;
  lastModified: number;
}

/** A stored file, as declared. */
export interface UploadedFile {
  key: string;
  /** Its public URL; empty for a private file. */
  url: string;
  contentType: string;
  size: number;
}

type Parts = UploadPartsOutput & Pick<UploadedFile, 'key' | 'url'>;

interface ReadyPart {
  part: number;
  presignedUrl: string;
  ms: number;
}

const AT_ONCE = 4;
/** Of one part, or of one call: two to three minutes without a connection. */
const MAX_ATTEMPTS = 12;

/** Sends the parts that are not stored, and joins all. */
export async function sendInParts(
  client: UploadClient,
  file: File,
  { key, url, size, count, stored }: Parts,
  { signal, onProgress, fetch }: UploadOptions,
): Promise<UploadedFile> {
  const { upload } = client;
  const { controller, release } = following(signal);
  const ended = controller.signal;
  const call = { signal: ended };
  const bytesOf = (part: number) => file.slice((part - 1) * size, part * size);
  const waiting = Array.from({ length: count }, (_, i) => i + 1).filter((part) => !stored.includes(part));
  let loaded = file.size - waiting.reduce((sum, part) => sum + bytesOf(part).size, 0);
  const addLoaded = (bytes: number) => {
    loaded += bytes;
    onProgress?.({ loaded, total: file.size });
  };

  const presign = async (parts: number[]): Promise<ReadyPart[]> => {
    const { addresses, expiresIn } = await upload.presignParts.mutate({ key, parts }, call);
    return addresses.map(({ part, presignedUrl }) => ({ part, presignedUrl, ms: expiresIn * 1000 }));
  };
  /** The first parts: one call for all of them starts the upload. */
  const ready = new Map<number, ReadyPart>();

  const sendPart = async (part: number): Promise<void> => {
    const { presignedUrl, ms } = ready.get(part) ?? ((await presign([part]))[0] as ReadyPart);
    ready.delete(part);
    const bytes = bytesOf(part);
    let sent = 0;
    const onSent = (now: number) => {
      addLoaded(now - sent);
      sent = now;
    };
    try {
      await send(presignedUrl, bytes, { ms, onSent, signal: ended, fetch });
      onSent(bytes.size);
    } catch (error) {
      if (sent > 0) onSent(0);
      throw error;
    }
  };
  const sendNext = async (): Promise<void> => {
    for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
      const next = part;
      await repeat(() => sendPart(next), ended);
    }
  };

  try {
    addLoaded(0);
    const first = waiting.slice(0, AT_ONCE);
    if (first.length > 0) for (const part of await repeat(() => presign(first), ended)) ready.set(part.part, part);
    await Promise.all(Array.from({ length: AT_ONCE }, sendNext));
    const completed = await repeat(() => upload.complete.mutate({ key }, call), ended);
    return { key, url, contentType: completed.contentType, size: completed.size };
  } catch (error) {
    controller.abort();
    if (!signal?.aborted) throw error;
    // Otherwise the service deletes it a day later.
    await upload.remove.mutate({ name: key.slice(key.indexOf('/') + 1) }).catch(() => undefined);
    throw reasonOf(signal);
  } finally {
    release();
  }
}

/** Repeats work that failed for a lost connection, or for an address that has expired. */
async function repeat<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await work();
    } catch (error) {
      const isLimited = isServiceError(error) && error.status === 429;
      const mayPass = (isPassing(error) && !isLimited) || error instanceof UploadError;
      if (signal.aborted || !mayPass || failures + 1 === MAX_ATTEMPTS) throw error;
      await pauseAfter(error, failures, signal);
      throwIfAborted(signal);
    }
  }
}
