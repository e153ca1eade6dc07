import { createClient, TimeoutError, uploadFile } from 'account-client';
import { afterEach, expect, test, vi } from 'vitest';
import { inTime } from '../../rig/until.ts';

afterEach(() => vi.restoreAllMocks());

const url = 'https://accounts.example.com';

const missing = (): never => {
  throw new TypeError('not a function');
};

/** A client of a service that allows an upload for a time, maybe in parts. */
const declaring = (expiresIn: number, parts?: object) => {
  const presignedUrl = 'https://files.example.com/x';
  const addresses = [{ part: 1, size: 5, presignedUrl }];
  const data = { success: true, presignedUrl, publicUrl: '', key: 'uploads/x', expiresIn, parts, addresses };
  return createClient({ url, fetch: async () => Response.json({ result: { data } }) });
};

/** A service that never answers, and the signals of its requests. */
function hanging() {
  const signals: (AbortSignal | null | undefined)[] = [];
  const fetch = (_: unknown, { signal }: RequestInit = {}) => {
    signals.push(signal);
    return new Promise<Response>((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason));
    });
  };
  return { signals, fetch };
}

test('a call aborted by its caller rejects, beside another call of its tick', async () => {
  const { signals, fetch } = hanging();
  const client = createClient({ url, fetch });
  const stopping = new AbortController();
  const other = client.profile.get.query();
  const call = client.users.get.query({ id: 'user_1' }, { signal: stopping.signal });
  await Promise.race([call, other, expect.poll(() => signals.length).toBeGreaterThan(0)]);
  stopping.abort();
  await expect(inTime(call, { within: 5000, what: 'the abort' })).rejects.toThrow('aborted');
  expect(signals.filter((signal) => signal?.aborted)).toHaveLength(1);
});

test('calls and uploads work, time out and end, without AbortSignal.any, AbortSignal.timeout and throwIfAborted', async () => {
  vi.spyOn(AbortSignal, 'any').mockImplementation(missing);
  vi.spyOn(AbortSignal, 'timeout').mockImplementation(missing);
  vi.spyOn(AbortSignal.prototype, 'throwIfAborted').mockImplementation(missing);
  const quick = createClient({ url, fetch: async () => Response.json({ result: { data: { data: [] } } }) });
  await expect(quick.users.list.query({})).resolves.toEqual({ data: [] });

  const { signals, fetch } = hanging();
  const { signal } = new AbortController();
  const slow = createClient({ url, fetch, timeout: 1 });
  await expect(slow.users.list.query({})).rejects.toBeInstanceOf(TimeoutError);
  await expect(slow.users.list.query({}, { signal })).rejects.toBeInstanceOf(TimeoutError);
  expect(signals.map((one) => one?.reason.name)).toEqual(['TimeoutError', 'TimeoutError']);

  const file = new File(['%PDF-'], 'a.pdf', { type: 'application/pdf' });
  const stored = async () => new Response();
  for (const client of [declaring(300), declaring(300, { size: 5, count: 1 })])
    await expect(uploadFile(client, file, { signal, fetch: stored })).resolves.toMatchObject({ key: 'uploads/x' });
  await expect(uploadFile(declaring(0), file, { signal, fetch })).rejects.toBeInstanceOf(TimeoutError);

  // Nor have signals a reason there.
  const stopped = new AbortController();
  stopped.abort();
  vi.spyOn(stopped.signal, 'reason', 'get').mockReturnValue(undefined);
  const aborted = uploadFile(declaring(300), file, { signal: stopped.signal, fetch: stored });
  await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
});

test('an answer whose body does not end times out', async () => {
  const fetch = async (_: unknown, { signal }: RequestInit = {}) =>
    new Response(
      new ReadableStream({ start: (body) => signal?.addEventListener('abort', () => body.error(signal.reason)) }),
    );
  const call = createClient({ url, fetch, timeout: 1 }).users.list.query({});
  await expect(inTime(call, { within: 5000, what: 'the end' })).rejects.toBeInstanceOf(TimeoutError);
});
