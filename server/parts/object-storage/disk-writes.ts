import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
import { forbidden } from './disk-addresses.ts';

/** The chunks of a request's body. */
export async function* chunksOf(body: Readable): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw forbidden('The body was cut off', error);
  }
}

export async function discard(body: Readable): Promise<void> {
  for await (const _ of chunksOf(body));
}

/**
 * Writes exactly `size` bytes from `start` of the file, which then survive a power cut, and closes it. Rejects with
 * FORBIDDEN if there are fewer.
 */
export async function writeAll(
  file: FileHandle,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { start = 0, size }: { start?: number; size: number },
): Promise<void> {
  try {
    let written = 0;
    for await (const chunk of chunks) {
      for (let done = 0; done < chunk.byteLength; ) {
        const { bytesWritten } = await file.write(chunk, done, chunk.byteLength - done, start + written + done);
        done += bytesWritten;
      }
      written += chunk.byteLength;
    }
    if (written !== size) throw forbidden('The body was cut off');
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** The name of a file that was linked or renamed survives a power cut. Windows cannot do this. */
export async function keepName(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = await open(dirname(path));
  await folder.sync().finally(() => folder.close());
}
