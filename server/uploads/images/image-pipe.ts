import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { imageTypes } from '../../shared/image-limits.ts';

/** The descriptor in the conversion process: the first after the standard ones and IPC. */
export const PIPE = 4;

/** The types of uploads, and that of stored pictures. */
const sentTypes = [...imageTypes, 'image/webp'] as const;
export type SentType = (typeof sentTypes)[number];

/** Three unsigned integers: the id, the index in `sentTypes`, and the number of bytes that follow. */
const HEADER_BYTES = 12;

/** Receives the error if something could not be sent. */
export type Sent = (error?: Error | null) => void;

/**
 * Writes an image to the conversion process in the pieces in which it arrived: an IPC message would join and serialize
 * them, which blocks the event loop for milliseconds.
 */
export function writeImage(
  pipe: Writable,
  { id, type, chunks }: { id: number; type: SentType; chunks: Uint8Array[] },
  sent: Sent,
): void {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(id, 0);
  header.writeUInt32BE(sentTypes.indexOf(type), 4);
  header.writeUInt32BE(
    chunks.reduce((sum, { length }) => sum + length, 0),
    8,
  );
  // All in one call: it succeeds or fails as a whole.
  pipe.cork();
  pipe.write(header, sent);
  for (const chunk of chunks) pipe.write(chunk);
  pipe.uncork();
}

export interface ReadImage {
  id: number;
  type: SentType;
  bytes: Buffer;
}

/** Reads the output of `writeImage`, each image straight into the one buffer that `receive` gets. */
export function readImages(fd: number, receive: (image: ReadImage) => void): void {
  const header = Buffer.alloc(HEADER_BYTES);
  let reading = header;
  let filled = 0;

  const begin = (buffer: typeof reading) => {
    reading = buffer;
    filled = 0;
  };
  const complete = () => {
    if (reading === header) return begin(Buffer.allocUnsafeSlow(header.readUInt32BE(8)));
    const bytes = reading;
    begin(header);
    receive({ id: header.readUInt32BE(0), type: sentTypes[header.readUInt32BE(4)] as SentType, bytes });
  };

  new Socket({
    fd,
    onread: {
      buffer: () => reading.subarray(filled),
      callback(length) {
        filled += length;
        if (filled === reading.length) complete();
        return true;
      },
    },
  });
}
