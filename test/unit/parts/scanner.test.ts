import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, test } from 'vitest';
import { clamdScanner, verdictIn } from '../../../server/parts/scanner/clamd.ts';
import { openScanner } from '../../../server/parts/scanner/index.ts';
import { startHttpScanner } from '../../rig/servers/scanner.ts';

const fileOf = (bytes: Buffer) => ({ bytes: Readable.from([bytes]), size: bytes.length });

test.each([
  ['stream: OK\0', { result: 'clean' }],
  ['stream: Win.Test.EICAR_HDB-1 FOUND\0', { result: 'infected', finding: 'Win.Test.EICAR_HDB-1' }],
  ['stream: \x01\x02 FOUND\0', { result: 'infected', finding: 'unnamed' }],
  [`stream: ${'x'.repeat(300)} FOUND\0`, { result: 'infected', finding: 'x'.repeat(100) }],
  ['INSTREAM size limit exceeded. ERROR\0', { result: 'unknown', answer: 'INSTREAM size limit exceeded. ERROR' }],
  ['stream: Can’t allocate memory ERROR\0', { result: 'unknown', answer: 'stream: Can’t allocate memory ERROR' }],
  ['UNKNOWN COMMAND\0', { result: 'unknown', answer: 'UNKNOWN COMMAND' }],
  ['stream: OK FOUND\0', { result: 'infected', finding: 'OK' }],
  ['xstream: OK\0', { result: 'unknown', answer: 'xstream: OK' }],
])('clamd answers %j', (answer, verdict) => {
  expect(verdictIn(answer)).toEqual(verdict);
});

test.each(['', 'stream: OK', 'stream: Win.Test FOUND'])('without a whole answer there is no verdict: %j', (text) => {
  expect(() => verdictIn(text)).toThrow('without an answer');
});

describe('a clamd', () => {
  const ends: (() => void)[] = [];
  afterEach(() => {
    for (const end of ends.splice(0)) end();
  });
  const listening = async (answer: (socket: Socket) => void): Promise<URL> => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket.on('error', () => undefined));
      answer(socket);
    }).listen(0, '127.0.0.1');
    ends.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    await once(server, 'listening');
    return new URL(`clamd://127.0.0.1:${(server.address() as AddressInfo).port}`);
  };

  test('gets a file in pieces with their lengths, and a length of 0', async () => {
    const received: Buffer[] = [];
    const url = await listening((socket) =>
      socket.on('data', (piece: Buffer) => {
        received.push(piece);
        if (Buffer.concat(received).subarray(-4).equals(Buffer.alloc(4))) socket.end('stream: OK\0');
      }),
    );
    const file = { bytes: Readable.from([Buffer.from('ab'), Buffer.from('cde')]), size: 5 };
    expect(await clamdScanner(url).scan(file, 5000)).toEqual({ result: 'clean' });
    expect(Buffer.concat(received).toString('latin1')).toBe('zINSTREAM\0\0\0\0\x02ab\0\0\0\x03cde\0\0\0\0');
  });

  test('that hangs, and a file that does not come: rejected in time, and the file is closed', async () => {
    const url = await listening((socket) => socket.resume());
    const scanner = clamdScanner(url);
    const file = fileOf(Buffer.from('a'));
    await expect(scanner.scan(file, 50)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    expect(file.bytes.destroyed).toBe(true);
    const endless = { bytes: new Readable({ read: () => undefined }), size: 5 };
    await expect(scanner.scan(endless, 50)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    expect(endless.bytes.destroyed).toBe(true);
  });

  test('that answers before the end of a file: the rest is not sent', async () => {
    const url = await listening((socket) =>
      socket.once('data', () => socket.resume().end('INSTREAM size limit exceeded. ERROR\0')),
    );
    let pieces = 0;
    const bytes = Readable.from(
      (async function* () {
        for (; pieces < 10_000; pieces++) yield Buffer.alloc(64 * 1024);
      })(),
    );
    expect(await clamdScanner(url).scan({ bytes, size: 655_360_000 }, 20_000)).toMatchObject({ result: 'unknown' });
    expect(pieces).toBeLessThan(10_000);
  });

  test.each([
    ['a file', (url: URL) => clamdScanner(url).scan(fileOf(Buffer.from('a')), 5000)],
    ['a ping', (url: URL) => clamdScanner(url).ping()],
  ])('that closes the connection: %s is rejected', async (_name, ask) => {
    await expect(ask(await listening((socket) => socket.end()))).rejects.toThrow();
  });

  test('with all its turns taken still answers a ping; concurrent ones are one', async () => {
    let pings = 0;
    const url = await listening((socket) =>
      socket.once('data', (piece: Buffer) => {
        if (!piece.toString('latin1').startsWith('zPING')) return;
        pings++;
        socket.end('PONG\0');
      }),
    );
    const scanner = clamdScanner(url);
    const scans = Promise.allSettled(Array.from({ length: 20 }, () => scanner.scan(fileOf(Buffer.from('a')), 500)));
    await Promise.all([scanner.ping(), scanner.ping()]);
    expect(pings).toBe(1);
    expect((await scans).every(({ status }) => status === 'rejected')).toBe(true);
  });

  test('that answers without end is cut off', async () => {
    const url = await listening((socket) => {
      const flood = () => socket.writable && socket.write(Buffer.alloc(64 * 1024, 'x'), flood);
      flood();
    });
    await expect(clamdScanner(url).scan(fileOf(Buffer.from('a')), 20_000)).rejects.toThrow('without an answer');
  });

  test('that fails: a file that cannot be read is no verdict', async () => {
    const url = await listening((socket) => socket.resume());
    const bytes = new Readable({ read: () => bytes.destroy(new Error('the storage is away')) });
    await expect(clamdScanner(url).scan({ bytes, size: 5 }, 5000)).rejects.toThrow('the storage is away');
  });
});

test('a scanner over HTTP gets user and password of its address', async () => {
  const scanner = await startHttpScanner();
  try {
    const url = scanner.url.replace('http://', 'http://user:p%40ss@');
    const opened = await openScanner({ scan: { url, allowsWhenDown: false } });
    expect(await opened?.scan(fileOf(Buffer.from('a')), 5000)).toEqual({ result: 'clean' });
    expect(scanner.authorizations).toEqual([`Basic ${Buffer.from('user:p@ss').toString('base64')}`]);
    await opened?.ping();
    scanner.behave({ status: 503, body: '' });
    await expect(opened?.ping()).rejects.toThrow('503');
    await expect(opened?.scan(fileOf(Buffer.from('a')), 5000)).rejects.toThrow('503');
    expect(await opened?.isAway()).toBe(false);
    scanner.behave('hang');
    expect(await opened?.isAway()).toBe(false);
    await scanner.down();
    expect(await opened?.isAway()).toBe(true);
  } finally {
    await scanner.stop();
  }
});

test('without SCAN_URL there is no scanner', async () => {
  expect(await openScanner({ scan: undefined })).toBeUndefined();
});
