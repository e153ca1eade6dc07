import { createClient, NetworkError, uploadFile } from 'account-client';
import { afterEach, expect, test, vi } from 'vitest';
import { inTime } from '../../rig/until.ts';

afterEach(() => vi.unstubAllGlobals());

const fetchOffline = () => Promise.reject(new TypeError('offline'));

test.each([
  ['https://app.example.com/', 'https://accounts.example.com', '; if it runs, its ALLOWED_ORIGINS may not name'],
  ['https://accounts.example.com/dashboard', '', ''],
  ['file:///app/index.html', 'https://accounts.example.com', ''],
  ['app://localhost/index.html', 'https://accounts.example.com', ''],
  ['app://localhost/index.html', '', ''],
])('a page at %s that cannot reach the service at “%s” is told so', async (page, url, hint) => {
  vi.stubGlobal('location', new URL(page));
  const client = createClient({ url, fetch: fetchOffline });
  const error: unknown = await client.profile.get.query().catch((rejected: unknown) => rejected);
  expect(error).toBeInstanceOf(NetworkError);
  expect(String(error)).toContain(`The service could not be reached (offline${hint}`);
  if (hint === '') expect(String(error)).toMatch(/\(offline\)$/);
});

test.each([
  ['7', 7],
  ['0', 0],
  ['Wed, 21 Oct 2026 07:28:00 GMT', undefined],
  ['-1', undefined],
  ['Infinity', undefined],
])('Retry-After: %s of a refusal is %s seconds', async (header, retryAfter) => {
  const refusal = { message: 'Busy', code: 'SERVICE_UNAVAILABLE' };
  const fetch = async () => Response.json(refusal, { status: 503, headers: { 'Retry-After': header } });
  const error: unknown = await createClient({ url: 'https://accounts.example.com', fetch })
    .profile.get.query()
    .catch((rejected: unknown) => rejected);
  expect(error).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect((error as { retryAfter?: number }).retryAfter).toBe(retryAfter);
});

test.each([502, 503])('an answer %i of a proxy is not taken for a refused origin', async (status) => {
  vi.stubGlobal('location', new URL('https://app.example.com/'));
  const headers = { 'Content-Type': 'text/html', 'Retry-After': '7' };
  const fetch = async () => new Response('<h1>Bad gateway</h1>', { status, headers });
  const error: unknown = await createClient({ url: 'https://accounts.example.com', fetch })
    .profile.get.query()
    .catch((rejected: unknown) => rejected);
  expect(error).toBeInstanceOf(NetworkError);
  expect(error).toMatchObject({
    message: `The service could not be reached (HTTP ${status}, not from the service)`,
    retryAfter: 7,
  });
});

test.each(['upload.presign', 'upload.confirm'])(
  'a file whose upload is aborted in %s rejects with the reason',
  async (at) => {
    const stopping = new AbortController();
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const declared = {
      success: true,
      presignedUrl: 'https://files.example.com/x',
      publicUrl: '',
      key: 'x',
      expiresIn: 300,
    };
    const fetch = (async (input: string | URL | Request, init?: RequestInit) => {
      const url = String(input instanceof Request ? input.url : input);
      if (url.startsWith('https://files')) return new Response();
      if (!url.includes(at)) return Response.json({ result: { data: declared } });
      resolve();
      return new Promise<Response>((_, reject) => {
        init?.signal?.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
      });
    }) as typeof globalThis.fetch;
    const client = createClient({ url: 'https://accounts.example.com', fetch });
    const file = new File(['%PDF-'], 'a.pdf', { type: 'application/pdf' });
    const uploaded = uploadFile(client, file, { signal: stopping.signal, fetch });
    await asked;
    const reason = new Error('the page was closed');
    stopping.abort(reason);
    await expect(uploaded).rejects.toBe(reason);
  },
);

test('a large file whose join is refused by a limit rejects at once', async () => {
  const answers: Record<string, object> = {
    'upload.presign': {
      ...{
        success: true,
        presignedUrl: 'https://files.example.com/x',
        publicUrl: '',
        key: 'uploads/x',
        expiresIn: 300,
      },
      parts: { size: 5, count: 1 },
    },
    'upload.presignParts': {
      ...{ success: true, expiresIn: 300 },
      addresses: [{ part: 1, size: 5, presignedUrl: 'https://files.example.com/1' }],
    },
  };
  const calls: string[] = [];
  const fetch = (async (input: string | URL | Request) => {
    const { origin, pathname } = new URL(String(input instanceof Request ? input.url : input));
    if (origin === 'https://files.example.com') return new Response();
    const name = pathname.slice('/trpc/'.length);
    calls.push(name);
    if (name in answers) return Response.json({ result: { data: answers[name] } });
    const data = { code: 'RATE_LIMITED', httpStatus: 429 };
    const headers = { 'retry-after': '3600' };
    return Response.json({ error: { message: 'Too many', code: -32029, data } }, { status: 429, headers });
  }) as typeof globalThis.fetch;
  const client = createClient({ url: 'https://accounts.example.com', fetch });
  const sent = uploadFile(client, new File(['%PDF-'], 'a.pdf', { type: 'application/pdf' }), { fetch });
  await expect(inTime(sent, { within: 5000, what: 'the end' })).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  expect(calls.filter((name) => name === 'upload.complete')).toHaveLength(1);
});
