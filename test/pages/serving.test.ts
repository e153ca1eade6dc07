import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { onStack } from '../contract/rig/scenario.ts';

const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

/** The bytes on the wire. */
async function read(url: string, encoding: string, headers: Record<string, string> = html) {
  // fetch would decompress; node:http does not.
  const { get } = await import('node:http');
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number | undefined;
    headers: Record<string, string | string[] | undefined>;
    body: Buffer;
  }>();
  get(url, { headers: { ...headers, 'accept-encoding': encoding } }, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('end', () =>
      resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) }),
    );
  }).on('error', reject);
  return promise;
}

const assetsIn = (shell: string) =>
  [...shell.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path);

describe('the pages', () => {
  onStack('embedded', (stack) => {
    const get = (path: string, encoding = 'identity', headers = html) => read(stack().url + path, encoding, headers);

    test('the first load of /login is below 45 kB for browsers over https, and below 48 kB without Brotli', async () => {
      for (const encoding of ['br', 'gzip']) {
        const shell = await get('/login', encoding);
        const plain = (encoding === 'br' ? brotliDecompressSync : gunzipSync)(shell.body).toString();
        const assets = await Promise.all(assetsIn(plain).map((path) => get(path, encoding)));
        expect(new Set(assets.map(({ headers }) => headers['content-encoding']))).toEqual(new Set([encoding]));
        const size = [shell, ...assets].reduce((sum, { body }) => sum + body.length, 0);
        expect(size).toBeLessThan(encoding === 'br' ? 45_000 : 48_000);
      }
    });

    test('assets are cached for a year, the shell is not cached', async () => {
      const shell = await get('/login');
      expect(shell.headers['cache-control']).toBe('no-store');
      for (const path of assetsIn(shell.body.toString())) {
        const asset = await get(path);
        expect(asset.status).toBe(200);
        expect(path).toMatch(/-[\w-]{8}\.(?:js|css)$/);
        expect(asset.headers).toMatchObject({
          'cache-control': 'public, max-age=31536000, immutable',
          vary: expect.stringContaining('Accept-Encoding'),
          'x-content-type-options': 'nosniff',
        });
      }
    });

    test('a trailing slash redirects to the page, with the query', async () => {
      for (const [path, location] of [
        ['/dashboard/', '/dashboard'],
        ['/confirm-email/?token=AAAA', '/confirm-email?token=AAAA'],
      ] as const) {
        const { status, headers } = await get(path);
        expect([status, headers['location']]).toEqual([302, location]);
      }
      for (const path of ['/dashboard//', '/nowhere/']) expect((await get(path)).status, path).toBe(404);
    });

    test.each([
      '/',
      '/register',
      '/login',
      '/verify-email',
      '/forgot-password',
      '/reset-password',
      '/not-me',
      '/dashboard',
      '/dashboard/security',
      '/dashboard/devices',
      '/dashboard/activity',
      '/dashboard/data',
      '/admin',
    ])('%s is a page, with the documented policy and without a cookie', async (path) => {
      const { status, headers } = await get(path);
      expect(status).toBe(200);
      expect(headers['content-type']).toBe('text/html; charset=utf-8');
      expect(headers['content-security-policy']).toContain("default-src 'self'; script-src 'self' 'unsafe-inline'");
      expect(headers['set-cookie']).toBeUndefined();
    });

    test('a missing page is HTML for browsers and JSON for programs', async () => {
      const json = { accept: '*/*' };
      const cases: [path: string, headers: typeof json, type: string][] = [
        ['/nowhere', html, 'text/html; charset=utf-8'],
        ['/login//', html, 'text/html; charset=utf-8'],
        ['/nowhere', json, 'application/json; charset=utf-8'],
        ['/api/nowhere', html, 'application/json; charset=utf-8'],
        ['/auth/nowhere', html, 'application/json; charset=utf-8'],
        ['/trpc/nowhere', html, 'application/json; charset=utf-8'],
        ['/assets/nowhere.js', html, 'application/json; charset=utf-8'],
        ['/assets/../../../package.json', html, 'text/html; charset=utf-8'],
      ];
      for (const [path, headers, type] of cases) {
        const answer = await get(path, 'identity', headers);
        expect([answer.status, answer.headers['content-type']], path).toEqual([404, type]);
      }
    });

    test('pages answer GET and HEAD only', async () => {
      const answer = await fetch(`${stack().url}/login`, { method: 'POST', headers: html });
      expect(answer.status).toBe(404);
      const head = await fetch(`${stack().url}/login`, { method: 'HEAD', headers: html });
      expect([head.status, await head.text()]).toEqual([200, '']);
    });
  });
});

describe('/openapi.json and the files of /docs', () => {
  onStack('embedded', (stack) => {
    const bundle = '/docs/swagger-ui-bundle.js';

    test.each(['/openapi.json', '/docs', '/docs/swagger-ui.css', bundle])('%s is compressed', async (path) => {
      const plain = await read(stack().url + path, 'identity');
      expect(plain.headers).toMatchObject({
        'content-length': String(plain.body.length),
        vary: 'Origin, Accept-Encoding',
      });
      for (const [encoding, decompress] of [
        ['br', brotliDecompressSync],
        ['gzip', gunzipSync],
      ] as const) {
        const { headers, body } = await read(stack().url + path, encoding);
        expect(headers['content-encoding']).toBe(encoding);
        expect(decompress(body).equals(plain.body)).toBe(true);
      }
    });

    test('a cached file is sent again only when it has changed', async () => {
      const { headers } = await read(stack().url + bundle, 'br');
      expect(headers).toMatchObject({
        'cache-control': 'public, max-age=86400',
        'content-type': 'text/javascript; charset=utf-8',
      });
      const etag = String(headers.etag);
      const known = await read(stack().url + bundle, 'br', { 'if-none-match': etag });
      expect([known.status, known.headers.etag, known.body.length]).toEqual([304, etag, 0]);
      const changed = await read(stack().url + bundle, 'br', { 'if-none-match': 'W/"another"' });
      expect(changed.status).toBe(200);
    });
  });
});

describe('with PAGES=off', () => {
  onStack(
    'embedded',
    (stack) => {
      test('pages are 404, and everything else works', async () => {
        for (const path of ['/', '/login', '/dashboard', '/nowhere']) {
          const answer = await read(stack().url + path, 'identity');
          expect([answer.status, answer.headers['content-type']]).toEqual([404, 'application/json; charset=utf-8']);
        }
        expect((await read(`${stack().url}/dev/mail`, 'identity')).status).toBe(200);
        expect((await fetch(`${stack().url}/api/health`)).status).toBe(200);
      });
    },
    { env: { PAGES: 'off' } },
  );
});
