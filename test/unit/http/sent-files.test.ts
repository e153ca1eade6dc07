import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import zlib from 'node:zlib';
import Koa from 'koa';
import { afterEach, expect, test, vi } from 'vitest';
import { memoryFile } from '../../../server/http/web/memory-file.ts';
import { diskStorage } from '../../../server/parts/object-storage/disk.ts';
import { createSecrets } from '../../../server/secrets.ts';
import { openFiles } from '../../contract/uploads/storage.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

const dataDir = temporaryDirectory('files');
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

test('a failed compression is retried at the next request', async () => {
  vi.spyOn(zlib, 'brotliCompress').mockImplementationOnce(((
    _content: unknown,
    _options: unknown,
    done: (e: Error) => void,
  ) => done(new Error('no memory'))) as never);
  syncBuiltinESMExports();
  const send = memoryFile({ type: 'html', content: Buffer.from('<p>Ada</p>'), cacheControl: 'no-store' });
  const app = new Koa().use(send);
  app.silent = true;
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const ask = () => fetch(`http://127.0.0.1:${port}/`, { headers: { 'accept-encoding': 'br' } });
  try {
    expect((await ask()).status).toBe(500);
    const again = await ask();
    expect([again.status, again.headers.get('content-encoding'), await again.text()]).toEqual([
      200,
      'br',
      '<p>Ada</p>',
    ]);
  } finally {
    server.close();
  }
});

test.skipIf(process.platform !== 'linux')('a file is closed if its size cannot be read', async () => {
  const storage = diskStorage({ dataDir, appUrl: 'http://localhost', secrets: createSecrets(['x']) });
  const file = join(dataDir, 'objects/uploads/a.png');
  mkdirSync(join(dataDir, 'objects/uploads'));
  writeFileSync(file, 'x');
  const isOpen = () => openFiles(process.pid).includes(file);
  const handle = await open(file);
  expect(isOpen()).toBe(true);
  await handle.close();
  vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'stat').mockRejectedValueOnce(new Error('EIO'));
  await expect(storage.served?.open('uploads/a.png', new URLSearchParams())).rejects.toMatchObject({ status: 503 });
  expect(isOpen()).toBe(false);
});
