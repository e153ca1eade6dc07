import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { access, link, mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { unavailable } from '../../errors.ts';
import type { Secrets } from '../../secrets.ts';
import { type FoundObject, type ObjectStorage, type OpenObject, type ServedFile, visibilityOf } from './contract.ts';
import { diskAddresses, forbidden } from './disk-addresses.ts';
import { diskParts } from './disk-parts.ts';
import { chunksOf, keepName, writeAll } from './disk-writes.ts';

interface Options {
  dataDir: string;
  appUrl: string;
  secrets: Secrets;
}

/**
 * The embedded form: files in DATA_DIR/objects. A file appears whole or not at all. Only a copy replaces
 * another file. Drafts left by a crash are deleted at start.
 */
export function diskStorage({ dataDir, appUrl, secrets }: Options): ObjectStorage {
  const addresses = diskAddresses({ appUrl, secrets });
  const root = join(dataDir, 'objects');
  const unfinished = join(root, '.unfinished');
  mkdirSync(unfinished, { recursive: true, mode: 0o700 });
  const { receive: receivePart, prepare: prepareParts, ...parts } = diskParts({ root, unfinished, addresses });

  /**
   * Resolves to false, and keeps the existing file, if the name is taken. The draft reserves the name: only one of
   * several concurrent requests is received. After an abort the name is free again.
   */
  const store = async (
    key: string,
    chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    size: number,
    { place = link, name = basename(key) } = {},
  ) => {
    const draft = join(unfinished, name);
    const file = await open(draft, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'EEXIST' ? forbidden('The address is in use') : unavailable(error);
    });
    try {
      await writeAll(file, chunks, { size });
      await mkdir(dirname(join(root, key)), { recursive: true, mode: 0o700 });
      await place(draft, join(root, key));
      await keepName(join(root, key));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw unavailable(error);
    } finally {
      await rm(draft, { force: true });
    }
  };

  const openObject = async (key: string): Promise<OpenObject | undefined> => {
    const file = await openFile(join(root, key));
    if (!file) return undefined;
    const { size, ino, mtimeMs } = await file.stat();
    return { size, bytes: file.createReadStream(), version: `${ino}-${mtimeMs}` };
  };

  return {
    ...parts,
    presignPut: async (address) => addresses.presignPut(address),
    presignGet: async (address) => addresses.presignGet(address),

    async copy(from, to, _contentType, transfer) {
      const found = await openObject(from);
      if (!found) return false;
      const { size, bytes, version } = found;
      try {
        if (transfer && transfer.version !== version) return false;
        // A name of its own, because another request may write a file of this name.
        return await store(to, bytes, size, { place: rename, name: `${basename(to)}.${randomUUID()}` });
      } finally {
        bytes.destroy();
      }
    },

    open: openObject,

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

    publicUrl: (key) => (visibilityOf(key) === 'private' ? '' : `${appUrl}/${key}`),

    // Not when it is opened: commands open it too, while the service receives files.
    async prepare() {
      rmSync(unfinished, { recursive: true, force: true });
      mkdirSync(unfinished, { recursive: true, mode: 0o700 });
      prepareParts();
    },

    served: {
      async receive(file) {
        if (file.query.has('part')) return receivePart(file);
        const size = addresses.verifyPut(file);
        const isUsed = await access(join(root, file.key)).then(
          () => true,
          () => false,
        );
        if (isUsed || !(await store(file.key, chunksOf(file.body), size))) throw forbidden('The address has been used');
      },

      async open(key, query): Promise<ServedFile | undefined> {
        const isSigned = visibilityOf(key) === 'private' || query.has('signature');
        const download = isSigned ? addresses.verifyGet(key, query) : undefined;
        const file = await openFile(join(root, key));
        if (!file) return undefined;
        const { size, mtime } = await file.stat().catch(async (error: unknown) => {
          await file.close();
          throw unavailable(error);
        });
        return {
          size,
          download,
          modifiedAt: mtime,
          read: (range) => file.createReadStream(range),
          close: () => file.close(),
        };
      },
    },

    close: () => undefined,
  };
}

const openFile = (path: string) =>
  open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw unavailable(error);
  });
