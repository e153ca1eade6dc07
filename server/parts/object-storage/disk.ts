import { createHmac, timingSafeEqual } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { access, type FileHandle, link, mkdir, open, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { ServiceError, unavailable } from '../../errors.ts';
import type { FoundObject, IncomingFile, ObjectStorage, PutAddress, ServedFile } from './contract.ts';

interface Options {
  dataDir: string;
  appUrl: string;
  secret: string;
}

type Signed = Pick<PutAddress, 'key' | 'contentType' | 'size'> & { expires: number };

/**
 * The embedded form: files in DATA_DIR/objects. Its addresses are the service's own, signed with an HMAC over the same
 * fields as S3's. A file appears whole or not at all, and never in the place of another; drafts that a crash left are
 * deleted at start.
 */
export function diskStorage({ dataDir, appUrl, secret }: Options): ObjectStorage {
  const root = join(dataDir, 'objects');
  const unfinished = join(root, '.unfinished');
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true, mode: 0o700 });

  const signatureOf = ({ key, contentType, size, expires }: Signed): string =>
    createHmac('sha256', secret).update(['put-object', key, contentType, size, expires].join('\n')).digest('base64url');

  /**
   * Answers false, and keeps the older file, where the name is taken. The draft has the file's name, so that of several
   * senders at once only one is received, and takes disk space; once it breaks off, the name is free again.
   */
  const store = async (key: string, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, size: number) => {
    const draft = join(unfinished, basename(key));
    const file = await open(draft, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'EEXIST' ? forbidden('The address is being used') : unavailable(error);
    });
    try {
      await writeAll(file, chunks, size);
      await mkdir(dirname(join(root, key)), { recursive: true, mode: 0o700 });
      await link(draft, join(root, key));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error instanceof ServiceError ? error : unavailable(error);
    } finally {
      await rm(draft, { force: true });
    }
  };

  const check = ({ key, query, contentType, contentLength }: IncomingFile): number => {
    const size = Number(query.get('size'));
    const expires = Number(query.get('expires'));
    const signed = { key, contentType: query.get('contentType') ?? '', size, expires };
    if (!isEqual(query.get('signature') ?? '', signatureOf(signed))) throw forbidden('The address is not valid');
    if (Date.now() >= expires * 1000) throw forbidden('The address has expired');
    if (contentType.toLowerCase() !== signed.contentType.toLowerCase())
      throw forbidden(`The content type must be ${signed.contentType}`);
    if (contentLength !== size) throw forbidden(`The content length must be ${size}`);
    return size;
  };

  return {
    async presignPut({ key, contentType, size, expiresInSeconds }) {
      const expires = Math.floor(Date.now() / 1000) + expiresInSeconds;
      const signature = signatureOf({ key, contentType, size, expires });
      const query = new URLSearchParams({ contentType, size: String(size), expires: String(expires), signature });
      return `${appUrl}/${key}?${query}`;
    },

    async put(key, bytes) {
      if (!(await store(key, [bytes], bytes.byteLength))) throw unavailable(new Error(`${key} exists already`));
    },

    async find(key, startBytes): Promise<FoundObject | undefined> {
      const file = await openFile(join(root, key));
      if (!file) return undefined;
      try {
        const { size } = await file.stat();
        const { buffer, bytesRead } = await file.read(Buffer.alloc(startBytes), 0, startBytes, 0);
        return { size, start: buffer.subarray(0, bytesRead) };
      } finally {
        await file.close();
      }
    },

    delete: (key) => rm(join(root, key), { force: true }),

    publicUrl: (key) => `${appUrl}/${key}`,

    prepare: async () => undefined,

    served: {
      async receive(file) {
        const size = check(file);
        const isUsed = await access(join(root, file.key)).then(
          () => true,
          () => false,
        );
        if (isUsed || !(await store(file.key, arriving(file.body), size))) throw forbidden('The address has been used');
      },

      async open(key): Promise<ServedFile | undefined> {
        const file = await openFile(join(root, key));
        if (!file) return undefined;
        const { size, mtime } = await file.stat();
        return {
          size,
          modifiedAt: mtime,
          read: (range) => file.createReadStream(range),
          close: () => file.close(),
        };
      },
    },

    close: () => undefined,
  };
}

const forbidden = (message: string) => new ServiceError('FORBIDDEN', { message });

function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** A body as it comes in. Its connection stays open when reading stops, because the answer must be sent on it. */
async function* arriving(body: Readable): AsyncGenerator<Uint8Array> {
  try {
    yield* body.iterator({ destroyOnReturn: false });
  } catch (error) {
    throw new ServiceError('FORBIDDEN', { message: 'The body was cut off', cause: error });
  }
}

async function writeAll(file: FileHandle, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, size: number) {
  try {
    let written = 0;
    for await (const chunk of chunks) {
      written += chunk.byteLength;
      await file.appendFile(chunk);
    }
    if (written !== size) throw forbidden('The body was cut off');
  } finally {
    await file.close();
  }
}

const openFile = (path: string) =>
  open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw unavailable(error);
  });
