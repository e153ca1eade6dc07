import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import type { ObjectStorage } from '../../../server/parts/object-storage/contract.ts';
import { s3Storage } from '../../../server/parts/object-storage/s3.ts';
import { until } from '../../rig/until.ts';

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
/** The connections that the service keeps for each time limit of its exchanges. */
const pools = { request: 50, copy: 20, background: 20, reader: 20 };
const cases: { name: string; pool: keyof typeof pools; call(storage: ObjectStorage): Promise<unknown> }[] = [
  { name: 'put', pool: 'request', call: (storage) => storage.put('public/a', picture, 'image/png') },
  { name: 'find', pool: 'request', call: (storage) => storage.find('private/a', 16) },
  { name: 'open', pool: 'reader', call: (storage) => storage.open('private/a') },
  { name: 'copy', pool: 'copy', call: (storage) => storage.copy('private/a', 'public/a', 'image/png') },
  {
    name: 'copy in the background',
    pool: 'background',
    call: (storage) => storage.copy('private/a', 'public/a', 'image/png', { version: 'b' }),
  },
];
const copied = '<CopyObjectResult><ETag>"a"</ETag><LastModified>2026-01-01T00:00:00Z</LastModified></CopyObjectResult>';

test.each(cases.flatMap((each) => NEVER_READ.map((status) => ({ ...each, status }))))(
  'as many answers of $status to `$name` as there are connections leave them free',
  async ({ call, pool, status }) => {
    let isBroken = true;
    const storage = await storageThat((req, res) => {
      req.resume();
      res.statusCode = isBroken ? status : 200;
      res.end(isBroken ? 'The storage restarts.' : copied);
    });
    const outcomes = await Promise.allSettled(Array.from({ length: pools[pool] }, () => call(storage)));
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['rejected']));
    isBroken = false;
    await call(storage);
  },
  5000,
);

test.each(cases)(
  'while fifty of `$name` hold all its connections, another one is refused after six seconds, and calls of other time limits work',
  async ({ call, pool }) => {
    const connections = pools[pool];
    let received = 0;
    const all = Promise.withResolvers<void>();
    const storage = await storageThat((req, res) => {
      req.resume();
      if (++received > connections) res.end(copied);
      if (received === connections) all.resolve();
    });
    // They fail when the server is closed.
    for (let waiting = 0; waiting < pools.request; waiting++) call(storage).catch(() => undefined);
    await all.promise;
    const others = cases.filter((other) => other.pool !== pool);
    await Promise.all(others.map((other) => other.call(storage)));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const outcome = call(storage).catch((error: unknown) => error);
    await until(() => vi.getTimerCount() === 1);
    const before = received;
    vi.advanceTimersByTime(6000);
    expect(await outcome).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    expect(received).toBe(before);
  },
);

test('a copy for a request may take longer than six seconds, unlike other exchanges', async () => {
  const storage = await storageThat((req, res) => {
    req.resume();
    res.end(copied);
  });
  // As if six seconds had passed.
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) =>
    ms <= 6000 ? AbortSignal.abort() : new AbortController().signal,
  );
  expect(await storage.copy('private/a', 'public/a', 'image/png')).toBe(true);
  await expect(storage.put('public/b', picture, 'image/png')).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
});
