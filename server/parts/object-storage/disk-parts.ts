import { randomUUID } from 'node:crypto';
import { globSync, rmSync } from 'node:fs';
import { access, link, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ServiceError, unavailable } from '../../errors.ts';
import type { IncomingFile, PartStorage } from './contract.ts';
import { type diskAddresses, forbidden } from './disk-addresses.ts';
import { chunksOf, discard, keepName, writeAll } from './disk-writes.ts';

interface Options {
  /** The folder of the objects. */
  root: string;
  /** A folder that every start empties. */
  unfinished: string;
  addresses: ReturnType<typeof diskAddresses>;
}

/** Parts are written to their place in this file, which becomes the object: joining them copies nothing. */
const DATA = 'data';

/**
 * Files in parts, each in a folder of its own: the data, and an empty file `<part>-<size>` for each part that is complete,
 * which is never written again. Parts outlive a restart.
 */
export function diskParts({ root, unfinished, addresses }: Options) {
  const parts = join(root, '.parts');
  const folderOf = (key: string) => join(parts, basename(key));

  /** In one step: nobody sees half of the parts. */
  const deleteParts = async (key: string): Promise<void> => {
    const removed = join(unfinished, randomUUID());
    await unless(['ENOENT'], rename(folderOf(key), removed));
    await rm(removed, { recursive: true, force: true });
  };

  const storage: PartStorage = {
    async startParts(key) {
      await mkdir(folderOf(key), { recursive: true, mode: 0o700 }).catch(fail);
      await (await open(join(folderOf(key), DATA), 'a', 0o600).catch(fail)).close();
      return 'disk';
    },

    presignPart: async (address) => addresses.presignPart(address),

    async storedParts({ key }) {
      const names = await unless(['ENOENT'], readdir(folderOf(key)));
      return names?.flatMap((name) => {
        const [, part, size] = /^(\d+)-(\d+)$/.exec(name) ?? [];
        return part ? [{ part: Number(part), size: Number(size), version: name }] : [];
      });
    },

    async joinParts({ key }) {
      const object = join(root, key);
      await mkdir(dirname(object), { recursive: true, mode: 0o700 }).catch(fail);
      const joined = link(join(folderOf(key), DATA), object).then(() => true);
      const isJoined = (await unless(['ENOENT', 'EEXIST'], joined)) ?? false;
      if (isJoined) await keepName(object).catch(fail);
      return isJoined;
    },

    deleteParts,
  };

  return {
    ...storage,

    /**
     * The draft reserves the part: only one of several concurrent requests is received. A complete part stays as it is:
     * a sender that got no response repeats it.
     */
    async receive(file: IncomingFile): Promise<void> {
      const { key, part, start, size } = addresses.verifyPart(file);
      const at = (name: string) => join(folderOf(key), name);
      const [draft, complete] = [at(`${part}.draft`), at(`${part}-${size}`)];
      const reservation = await open(draft, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') throw forbidden('The address is in use');
        throw error.code === 'ENOENT' ? forbidden('The upload has ended') : unavailable(error);
      });
      try {
        await reservation.close();
        if (await isThere(complete)) return await discard(file.body);
        await writeAll(await open(at(DATA), 'r+'), chunksOf(file.body), { start, size });
        await link(draft, complete);
      } catch (error) {
        if (error instanceof ServiceError) throw error;
        throw isMissing(error) ? forbidden('The upload has ended', error) : unavailable(error);
      } finally {
        await rm(draft, { force: true });
      }
    },

    /** At a start: no request of a former process is received any more. */
    prepare(): void {
      for (const draft of globSync('*/*.draft', { cwd: parts })) rmSync(join(parts, draft), { force: true });
    },
  };
}

const fail = (error: unknown): never => {
  throw unavailable(error);
};

const hasCode = (error: unknown, codes: readonly string[]) =>
  codes.includes((error as NodeJS.ErrnoException).code ?? '');

const isThere = async (file: string) =>
  (await unless(
    ['ENOENT'],
    access(file).then(() => true),
  )) ?? false;

const isMissing = (error: unknown) => hasCode(error, ['ENOENT']);

/** Undefined after an error with one of these codes. Rejects with SERVICE_UNAVAILABLE after any other. */
const unless = <T>(codes: readonly string[], work: Promise<T>): Promise<T | undefined> =>
  work.catch((error: unknown) => (hasCode(error, codes) ? undefined : fail(error)));
