import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import type { ObjectStorage } from '../../../server/parts/object-storage/contract.ts';
import { s3Storage } from '../../../server/parts/object-storage/s3.ts';
import { until } from '../../rig/until.ts';

/** All connections that the service keeps to its storage. */
const CONNECTIONS = 50;
const NEVER_READ = [408, 429, 499, 500, 502, 503, 504, 520];

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function storageThat(answer: RequestListener): Promise<ObjectStorage> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const storage = s3Storage(
    {
      endpoint,
      uploadEndpoint: endpoint,
      publicUrl: endpoint,
      region: 'us-east-1',
      bucket: 'files',
      accessKey: 'key',
      secretKey: 'secret',
      sessionToken: undefined,
    },
    { production: true, origins: new Set() },
  );
  onTestFinished(() => {
    storage.close();
    server.closeAllConnections();
    server.close();
  });
  return storage;
}

const picture = Buffer.from('picture');
const calls: Record<string, (storage: ObjectStorage) => Promise<unknown>> = {
  put: (storage) => storage.put('public/a', picture, 'image/png'),
  open: (storage) => storage.open('private/a'),
  find: (storage) => storage.find('private/a', 16),
  copy: (storage) => storage.copy('private/a', 'public/a', 'image/png', { version: 'b' }),
};

test.each(Object.keys(calls).flatMap((name) => NEVER_READ.map((status) => ({ name, status }))))(
  'as many answers of $status to `$name` as there are connections leave them free',
  async ({ name, status }) => {
    let isBroken = true;
    const storage = await storageThat((req, res) => {
      req.resume();
      res.statusCode = isBroken ? status : 200;
      res.end(isBroken ? 'The storage restarts.' : undefined);
    });
    const outcomes = await Promise.allSettled(Array.from({ length: CONNECTIONS }, () => calls[name]?.(storage)));
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['rejected']));
    isBroken = false;
    await storage.put('public/a', picture, 'image/png');
  },
  5000,
);

test('a call that finds all connections in use by readers that wait is SERVICE_UNAVAILABLE after six seconds', async () => {
  let received = 0;
  const all = Promise.withResolvers<void>();
  const storage = await storageThat(() => {
    if (++received === CONNECTIONS) all.resolve();
  });
  // They fail when the server is closed.
  for (let reader = 0; reader < CONNECTIONS; reader++) storage.open('private/a').catch(() => undefined);
  await all.promise;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const outcomes = Object.values(calls).map((call) => call(storage).catch((error: unknown) => error));
  await until(() => vi.getTimerCount() === outcomes.length);
  vi.advanceTimersByTime(6000);
  for (const outcome of outcomes) expect(await outcome).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect(received).toBe(CONNECTIONS);
});

test('a copy for a request may take longer than six seconds, unlike other exchanges', async () => {
  const storage = await storageThat((req, res) => {
    req.resume();
    res.end('<CopyObjectResult><ETag>"a"</ETag><LastModified>2026-01-01T00:00:00Z</LastModified></CopyObjectResult>');
  });
  // As if six seconds had passed.
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) =>
    ms <= 6000 ? AbortSignal.abort() : new AbortController().signal,
  );
  expect(await storage.copy('private/a', 'public/a', 'image/png')).toBe(true);
  await expect(storage.put('public/b', picture, 'image/png')).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
});
