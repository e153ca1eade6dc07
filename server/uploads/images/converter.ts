/*
 * A separate process keeps requests from waiting for a core, frees the memory of the decoders when it ends, and limits
 * a crash to the images in it.
 */

import { fork } from 'node:child_process';
import { getCompileCacheDir } from 'node:module';
import type { Socket } from 'node:net';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { ServiceError, unavailable } from '../../errors.ts';
import { releaseMemory } from '../../lib/release-memory.ts';
import type { ImagePurpose, ImageType } from '../../shared/image-limits.ts';
import { type ConvertedImage, type DerivedImage, MAX_SECONDS } from './conversion.ts';
import type { Answer, Request } from './held-images.ts';
import { PIPE, type Sent, type SentType, writeImage } from './image-pipe.ts';

/** The process ends after this time without an image and frees its memory. The next image then takes 0.2 s more. */
const IDLE_MS = 10_000;
/** A conversion times out before that, unless a decoder hangs. */
const HANGING_MS = (MAX_SECONDS + 5) * 1000;

/** An image in the conversion process that passed the cost check. */
interface OpenImage {
  /** True if it needs so much memory that it must be converted alone. */
  isHeavy: boolean;
  /** Makes the picture and smaller ones of these widths. Call at most once. Rejects with ServiceError. */
  convert(purpose: ImagePurpose, widths: readonly number[]): Promise<ConvertedImage>;
  /** Always call it at the end. */
  close(): void;
}

/** An image, or a stored picture, in the conversion process. */
type HeldImage = OpenImage & { derive(widths: readonly number[]): Promise<DerivedImage> };

/**
 * Converts images in a separate process at the lowest priority. The process starts with the first image and takes any
 * number; the caller decides when each is converted.
 */
export function createConverter({ cores = availableParallelism(), idleMs = IDLE_MS, hangingMs = HANGING_MS } = {}) {
  let current: ReturnType<typeof startProcess> | undefined;

  const send = async (chunks: Uint8Array[], type: SentType): Promise<HeldImage> => {
    try {
      if (!current?.isUsable()) current = startProcess({ cores, idleMs, hangingMs });
      return await current.open(chunks, type);
    } catch (error) {
      throw unavailable(error);
    }
  };

  return {
    /**
     * Sends an image and checks its cost immediately, without a queue. Rejects like `requireAffordable`, or with
     * SERVICE_UNAVAILABLE if the process cannot be started, ends or hangs.
     */
    open: (chunks: Uint8Array[], type: ImageType): Promise<OpenImage> => send(chunks, type),

    /**
     * Makes smaller pictures of one that the service has stored. Not with a converter that gets uploads: it lets the
     * process read another format. Rejects like `open`.
     */
    async derive(picture: Uint8Array, widths: readonly number[]): Promise<DerivedImage> {
      const held = await send([picture], 'image/webp');
      try {
        return await held.derive(widths);
      } finally {
        held.close();
      }
    },
  };
}

/** Inherits nothing of our environment, which holds secrets: decoders read untrusted input. */
const environment = (cores: number): NodeJS.ProcessEnv => {
  const compiled = getCompileCacheDir();
  return {
    // Without the folder that Node adds for its version.
    NODE_COMPILE_CACHE: compiled && dirname(compiled),
    // One thread per conversion, and more for concurrent cost checks.
    UV_THREADPOOL_SIZE: String(cores + 2),
    // With one arena per thread the peak is a third higher (docs/performance.md).
    MALLOC_ARENA_MAX: '2',
  };
};

function startProcess({ cores, idleMs, hangingMs }: Record<'cores' | 'idleMs' | 'hangingMs', number>) {
  const child = fork(join(import.meta.dirname, 'conversion-process.ts'), {
    execArgv: [],
    env: environment(cores),
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc', 'pipe'],
  });
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let lastId = 0;
  let images = 0;
  let idle: NodeJS.Timeout | undefined;

  child.on('message', (answer: Answer) => {
    if ('result' in answer) return waiting.get(answer.id)?.resolve(answer.result);
    const { code, ...details } = answer.failure;
    waiting.get(answer.id)?.reject(new ServiceError(code, details));
  });
  const failAll = (error: Error) => {
    for (const { reject } of waiting.values()) reject(unavailable(error));
  };
  child.on('error', (error) => {
    failAll(error);
    if (child.connected) child.disconnect();
  });
  child.on('exit', (code, signal) => failAll(new Error(`the conversion process ended: ${signal ?? code}`)));
  const pipe = child.stdio[PIPE] as Socket;
  // Each image in the process receives its own failure.
  pipe.on('error', () => undefined);

  /** Sends a request and waits for its response. */
  const answerTo = async <Result>(id: number, send: (sent: Sent) => void): Promise<Result> => {
    const answered = Promise.withResolvers<unknown>();
    waiting.set(id, answered);
    const hanging = setTimeout(() => child.kill('SIGKILL'), hangingMs);
    try {
      send((error) => error && answered.reject(unavailable(error)));
      return (await answered.promise) as Result;
    } finally {
      clearTimeout(hanging);
      waiting.delete(id);
    }
  };
  const send = (request: Request, sent: Sent = () => undefined) => child.send(request, sent);

  // The channel keeps this process alive only while it has images.
  child.unref();
  pipe.unref();
  const begin = () => {
    clearTimeout(idle);
    if (images++ === 0) child.channel?.ref();
  };
  const end = () => {
    if (--images > 0) return;
    child.channel?.unref();
    idle = setTimeout(() => {
      if (child.connected) child.disconnect();
      releaseMemory();
    }, idleMs).unref();
  };

  return {
    isUsable: () => child.connected && !child.killed && pipe.writable,

    async open(chunks: Uint8Array[], type: SentType): Promise<HeldImage> {
      const id = ++lastId;
      let isHeld = true;
      begin();
      try {
        const isHeavy = await answerTo<boolean>(id, (sent) => writeImage(pipe, { id, type, chunks }, sent));
        const ask = <Result>(request: Request): Promise<Result> => {
          isHeld = false;
          return answerTo(id, (sent) => send(request, sent));
        };
        return {
          isHeavy,
          convert: (purpose, widths) => ask({ id, step: 'convert', purpose, widths }),
          derive: (widths) => ask({ id, step: 'derive', widths }),
          close() {
            if (isHeld) send({ id, step: 'close' });
            end();
          },
        };
      } catch (error) {
        end();
        throw error;
      }
    },
  };
}
