import { existsSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { diskStorage } from '../../../server/parts/object-storage/disk.ts';
import { createSecrets } from '../../../server/secrets.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

const KEY = 'uploads/a.pdf';
const BYTES = Buffer.from('%PDF-1.7');

let dataDir: string;
/** Each call to the disk, and whether the object had its name then. */
let synced: [what: 'data' | 'name', isThere: boolean][];

beforeEach(async () => {
  dataDir = temporaryDirectory('disk');
  synced = [];
  const handle = await open(dataDir);
  await handle.close();
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  const isThere = () => existsSync(join(dataDir, 'objects', KEY));
  vi.spyOn(prototype, 'datasync').mockImplementation(async () => void synced.push(['data', isThere()]));
  vi.spyOn(prototype, 'sync').mockImplementation(async () => void synced.push(['name', isThere()]));
});
afterEach(() => vi.restoreAllMocks());

const storageIn = () => diskStorage({ dataDir, appUrl: 'http://localhost', secrets: createSecrets(['x']) });

const send = (storage: ReturnType<typeof storageIn>, address: string, contentType = '') =>
  storage.served?.receive({
    key: KEY,
    query: new URL(address).searchParams,
    contentType,
    contentLength: BYTES.length,
    body: Readable.from([BYTES]),
  });

const declared = { key: KEY, size: BYTES.length, expiresInSeconds: 60 };

// Windows cannot.
const name = process.platform === 'win32' ? [] : [['name', true]];

test('an object is on the disk before it has its name, and its name before the answer', async () => {
  const storage = storageIn();
  const contentType = 'application/pdf';
  await send(storage, await storage.presignPut({ ...declared, contentType }), contentType);
  expect(synced).toEqual([['data', false], ...name]);
  await storage.delete(KEY);
  await storage.put(KEY, BYTES, contentType);
  expect(synced.slice(1 + name.length)).toEqual([['data', false], ...name]);
  await storage.copy(KEY, 'uploads/b.pdf', contentType);
  expect(synced.slice(2 + 2 * name.length).map(([what]) => what)).toEqual(['data', ...name.map(([what]) => what)]);
});

test('a part is on the disk before it counts as stored, and the name of a joined file before the answer', async () => {
  const storage = storageIn();
  const id = await storage.startParts(KEY, 'application/pdf');
  await send(storage, await storage.presignPart({ ...declared, id, part: 1, start: 0 }));
  expect(synced).toEqual([['data', false]]);
  await storage.joinParts({ key: KEY, id }, []);
  expect(synced).toEqual([['data', false], ...name]);
});
