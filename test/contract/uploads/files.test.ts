import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Service } from '../../rig/process/service.ts';
import { until } from '../../rig/until.ts';
import { callerOf } from '../rig/callers.ts';
import { onStorage, openFiles, put, reachable, uploader } from './storage.ts';

const MEGABYTE = 1024 * 1024;

describe('files served by the service', () => {
  onStorage('disk', (uploading) => {
    test('images and videos are shown inline, other files downloaded', async () => {
      const { session } = await uploader(uploading());
      const call = callerOf('rest', uploading().stack.url);
      for (const [contentType, start, disposition] of [
        ['application/pdf', '%PDF-1.7', /^attachment; filename="[0-9a-f-]{36}\.pdf"$/],
        ['image/gif', 'GIF89a__', /^$/],
        ['video/mp4', '\0\0\0\x08ftyp', /^$/],
      ] as const) {
        const { data } = await call('upload.presign', { filename: 'a', contentType, size: 8 }, { session });
        await put(data.presignedUrl, Buffer.from(start, 'latin1'), { 'content-type': contentType });
        const { status, headers } = await fetch(reachable(data.publicUrl));
        expect([status, headers.get('content-type')]).toEqual([200, contentType]);
        expect(headers.get('content-disposition') ?? '').toMatch(disposition);
        expect(headers.get('x-content-type-options')).toBe('nosniff');
        expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');

        const part = (range: string, more: Record<string, string> = {}) =>
          fetch(reachable(data.publicUrl), { headers: { range, ...more } }).then(async (response) => [
            response.status,
            response.headers.get('content-range'),
            await response.text(),
          ]);
        const text = start as string;
        expect(await part('bytes=1-3')).toEqual([206, 'bytes 1-3/8', text.slice(1, 4)]);
        expect(await part('bytes=6-')).toEqual([206, 'bytes 6-7/8', text.slice(6)]);
        expect(await part('bytes=-2')).toEqual([206, 'bytes 6-7/8', text.slice(6)]);
        expect(await part('bytes=8-')).toEqual([416, 'bytes */8', '']);
        const refused = await fetch(reachable(data.publicUrl), { headers: { range: 'bytes=8-' } });
        expect(refused.headers.get('cache-control')).toBe('no-store');
        expect(await part('bytes=3-1')).toEqual([200, null, text]);
        expect(await part('bytes=0-1,3-4')).toEqual([200, null, text]);
        expect(await part('bytes=0-1', { 'if-range': '"other"' })).toEqual([200, null, text]);
        const unchanged = await fetch(reachable(data.publicUrl), {
          headers: { 'if-none-match': headers.get('etag') ?? '' },
        });
        expect(unchanged.status).toBe(304);
        const head = await fetch(reachable(data.publicUrl), { method: 'HEAD' });
        expect([head.status, head.headers.get('content-length')]).toEqual([200, '8']);
      }
    });

    test.each(['uploads/../secret', 'uploads/..%2fsecret', 'uploads/.unfinished', 'uploads/%00.png', 'uploads/x'])(
      '/%s is 404',
      async (path) => {
        expect((await fetch(`${uploading().stack.url}/${path}`)).status).toBe(404);
      },
    );

    /** Uploads a file and returns its URL. */
    const stored = async (contentType: string, bytes: Uint8Array): Promise<string> => {
      const { session } = await uploader(uploading());
      const call = callerOf('rest', uploading().stack.url);
      const file = { filename: 'a', contentType, size: bytes.length };
      const { data } = await call('upload.presign', file, { session });
      expect((await put(data.presignedUrl, bytes, { 'content-type': contentType })).status).toBe(200);
      return reachable(data.publicUrl);
    };
    /** Sends a GET over a connection of its own. */
    const ask = (url: string, headers: string[]) => {
      const { port, pathname } = new URL(url);
      const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
      socket.write(`GET ${pathname} HTTP/1.1\r\nHost: x\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`);
      return socket;
    };

    test('HEAD describes the whole file, even with a range, and has no content', async () => {
      const url = await stored('image/gif', Buffer.from('GIF89a__'));
      const head = await fetch(url, { method: 'HEAD', headers: { range: 'bytes=1-3' } });
      expect([head.status, head.headers.get('content-length'), head.headers.get('content-range')]).toEqual([
        200,
        '8',
        null,
      ]);
      const etag = head.headers.get('etag') ?? '';
      const known = await fetch(url, { method: 'HEAD', headers: { 'if-none-match': `"other", W/${etag}` } });
      expect(known.status).toBe(304);
    });

    test('a missing file gets the standard error without file headers', async () => {
      const url = await stored('application/pdf', Buffer.from('%PDF-1.7'));
      const [service] = uploading().stack.services as [Service];
      await rm(join(service.dataDir, 'objects', new URL(url).pathname));
      const response = await fetch(url, { headers: { range: 'bytes=1-3' } });
      expect({ status: response.status, body: await response.json() }).toEqual({
        status: 404,
        body: { message: 'Not found', code: 'NOT_FOUND' },
      });
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
      for (const name of ['etag', 'last-modified', 'content-disposition', 'content-range', 'accept-ranges'])
        expect([name, response.headers.get(name)]).toEqual([name, null]);
    });

    test('a body that is not read closes the connection, even after an answer without content', async () => {
      const url = await stored('image/gif', Buffer.from('GIF89a__'));
      const etag = (await fetch(url)).headers.get('etag');
      const socket = ask(url, [`If-None-Match: ${etag}`, 'Content-Length: 1000000']);
      let answer = '';
      socket.on('data', (data) => {
        answer += data.toString();
      });
      await until(() => answer.includes('\r\n\r\n'));
      expect(answer).toMatch(/^HTTP\/1\.1 304 /);
      expect(answer).toMatch(/^Connection: close\r$/m);
      socket.destroy();
    });

    test.each([
      ['what is no HTTP', 'hello\r\n\r\n', 400],
      [
        'a request with a broken body',
        'PUT /uploads/x.png HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
        400,
      ],
    ])('%s after a download is refused after its last byte', async (_, next, status) => {
      const bytes = Buffer.concat([Buffer.from('%PDF-1.7'), randomBytes(16 * MEGABYTE)]);
      const socket = ask(await stored('application/pdf', bytes), []);
      const pieces: Buffer[] = [];
      await new Promise((resolve) => socket.once('data', (piece) => resolve(pieces.push(piece))));
      socket.pause();
      socket.write(next);
      // The service has read everything sent.
      expect((await fetch(`${uploading().stack.url}/livez`)).status).toBe(200);
      socket.on('data', (piece) => pieces.push(piece)).resume();
      await new Promise((resolve) => socket.once('close', resolve));
      const all = Buffer.concat(pieces);
      const start = all.indexOf('\r\n\r\n') + 4;
      expect(all.subarray(start, start + bytes.length).equals(bytes)).toBe(true);
      expect(all.subarray(start + bytes.length).toString()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    });

    test('a client that disconnects during a download leaves no file open', async () => {
      const bytes = Buffer.concat([Buffer.from('%PDF-1.7'), randomBytes(16 * MEGABYTE)]);
      const url = await stored('application/pdf', bytes);
      const pid = uploading().stack.services[0]?.pid ?? 0;
      const downloads = () => openFiles(pid).filter((path) => path.endsWith(new URL(url).pathname)).length;
      const sockets = Array.from({ length: 20 }, () => ask(url, []));
      await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('data', resolve))));
      for (const socket of sockets) socket.pause();
      expect(downloads()).toBe(20);
      for (const socket of sockets) socket.destroy();
      await until(() => downloads() === 0);
      await fetch(url, { method: 'HEAD' });
      await fetch(url, { headers: { 'if-none-match': `"${new URL(url).pathname.slice(1)}"` } });
      await fetch(url, { headers: { range: `bytes=${bytes.length}-` } });
      await until(() => downloads() === 0);
    });
  });
});
