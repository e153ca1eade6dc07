/*
 * Half of the memory for forms is reserved for users with no other form in memory, so that one user cannot fill it.
 */

import { finished } from 'node:stream';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import type { Context } from 'koa';
import { invalidField, ServiceError } from '../../errors.ts';
import { imageTooLarge, MAX_IMAGE_BYTES } from '../../shared/image-limits.ts';
import { receiveBody } from '../bodies/body.ts';

/** Allowance for the rest of a form besides the file: boundaries, headers, other fields. */
const MAX_OVERHEAD_BYTES = 64 * 1024;
const MAX_BODY_BYTES = MAX_IMAGE_BYTES + MAX_OVERHEAD_BYTES;
const limits = {
  fileSize: MAX_IMAGE_BYTES,
  files: 1,
  fields: 4,
  parts: 5,
  fieldSize: 1024,
  headerPairs: 16,
  headerSize: 16 * 1024,
};

/**
 * Maximum pieces (chunks) of one form. Each costs some 600 bytes and microseconds. A network makes at most 10,000 of
 * the largest form; a chunked sender can make one per byte.
 */
const MAX_PIECES = 20_000;

/**
 * Smaller pieces of a file are joined as they arrive. The file is read in one go, and each piece then blocks the event
 * loop for some microseconds, whatever its size.
 */
const PIECE_BYTES = 16 * 1024;

/** Maximum bytes of all forms in memory together. */
const MAX_HELD_BYTES = 192 * 1024 * 1024;
let held = 0;
/** The number of forms in memory, per user. */
const formsOf = new Map<unknown, number>();

/**
 * Reads the multipart/form-data of a request into memory, never to disk. Rejects with VALIDATION_FAILED at the first
 * violation, and with SERVICE_UNAVAILABLE while too many forms are in memory.
 */
export async function readForm(ctx: Context): Promise<FormData> {
  if (!ctx.is('multipart/form-data')) throw refused('content_type', 'Must be multipart/form-data');
  if (ctx.request.length > MAX_BODY_BYTES) throw tooLarge();
  const { req, res } = ctx;
  const user: unknown = ctx.state['userId'];
  const parser = createParser(ctx);
  const form = new FormData();
  const { promise, resolve, reject } = Promise.withResolvers<FormData>();

  const room = formsOf.has(user) ? MAX_HELD_BYTES / 2 : MAX_HELD_BYTES;
  let received = 0;
  let pieces = 0;
  const receive = (chunk: Buffer) => {
    received += chunk.length;
    held += chunk.length;
    pieces++;
    if (received > MAX_BODY_BYTES) reject(tooLarge());
    if (pieces > MAX_PIECES) reject(refused('too_many_pieces', 'The form comes in too many pieces'));
    if (held > room) reject(busy());
  };
  formsOf.set(user, (formsOf.get(user) ?? 0) + 1);

  parser.on('file', (name: string | undefined, stream, filename, _encoding, type) => {
    if (name === undefined) reject(nameless());
    const content = createPieces();
    stream.on('data', content.add);
    stream.on('limit', () => reject(tooLarge()));
    stream.on('error', (error) => reject(refused('malformed', 'The form is malformed', error)));
    stream.on('end', () => form.append(name ?? '', new ReceivedFile(content.all(), filename, type)));
  });
  parser.on('field', (name: string | undefined, value, _nameTruncated, isTruncated) => {
    if (name === undefined) return reject(nameless());
    if (name === 'file') reject(refused('missing_filename', 'The part file has no file name'));
    if (isTruncated || form.has(name))
      reject(refused('malformed', `The part ${name.slice(0, 100)} is too long or sent twice`));
    form.append(name, value);
  });
  for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) {
    parser.on(limit, () => reject(refused('too_many_parts', 'The form has too many parts')));
  }
  parser.on('error', (error) => reject(refused('malformed', 'The form is malformed', error)));
  parser.on('finish', () => resolve(form));

  req.on('data', receive).pipe(parser);
  try {
    return await receiveBody(req, () => promise, 'file');
  } finally {
    req.unpipe(parser).off('data', receive).pause();
    // The form stays in memory until the request is answered or the client disconnects.
    finished(res, () => {
      held -= received;
      const others = (formsOf.get(user) ?? 1) - 1;
      if (others > 0) formsOf.set(user, others);
      else formsOf.delete(user);
    });
  }
}

/** Collects the pieces of a file; all but the last have at least `PIECE_BYTES`. */
function createPieces() {
  const pieces: Buffer<ArrayBuffer>[] = [];
  let small: Buffer<ArrayBuffer>[] = [];
  let bytes = 0;

  const join = () => {
    const [only, ...others] = small;
    if (only) pieces.push(others.length === 0 ? only : Buffer.concat(small));
    small = [];
    bytes = 0;
  };
  return {
    add(piece: Buffer<ArrayBuffer>): void {
      small.push(piece);
      bytes += piece.length;
      if (bytes >= PIECE_BYTES) join();
    },
    all(): Buffer<ArrayBuffer>[] {
      join();
      return pieces;
    },
  };
}

/**
 * A file in the pieces in which it was received; only `stream` reads it. Node's `File` copies the content twice, and
 * garbage collection of the copies blocks the event loop.
 */
class ReceivedFile extends File {
  override readonly size: number;
  readonly #chunks: Buffer<ArrayBuffer>[];

  constructor(chunks: Buffer<ArrayBuffer>[], name: string, type: string) {
    super([], name, { type });
    this.#chunks = chunks;
    this.size = chunks.reduce((sum, { length }) => sum + length, 0);
  }

  override stream() {
    return ReadableStream.from(this.#chunks);
  }
}

function createParser({ headers }: Context): BusboyInstance {
  try {
    return new Busboy({
      headers: { ...headers, 'content-type': headers['content-type'] ?? '' },
      limits,
      // Keeps the name as sent: it is only used as text.
      preservePath: true,
      isPartAFile: (_field, _type, filename) => filename !== undefined,
    });
  } catch (error) {
    throw refused('malformed', 'The form is malformed', error);
  }
}

const refused = (rule: string, message: string, cause?: unknown) =>
  invalidField('body', rule, message, { message, cause });

/** RFC 7578 section 4.2 requires a name, and the parser's types promise one. */
const nameless = () => refused('malformed', 'A part has no name');

const tooLarge = () => refused('too_large', imageTooLarge);

const busy = () =>
  new ServiceError('SERVICE_UNAVAILABLE', { cause: new Error('too many forms are held in memory'), retryAfter: 5 });
