import { randomUUID } from 'node:crypto';
import { readdirSync, readlinkSync } from 'node:fs';
import { access, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { isMutationRun } from '../../rig/mutation-run.ts';
import { outsideMutationRun } from '../../rig/outside-mutation-run.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import { type S3, startS3 } from '../../rig/servers/s3.ts';
import { type Stack, startStack } from '../../rig/stack.ts';
import { inTime } from '../../rig/until.ts';
import { callerOf } from '../rig/callers.ts';
import { type documented, loggedIn, stackNames, surfacesOn } from '../rig/scenario.ts';

/** Direct access to the stored objects. */
export interface Objects {
  keys(): Promise<string[]>;
  /** The keys of files in parts that were not joined. */
  unfinished(): Promise<string[]>;
  has(key: string): Promise<boolean>;
  read(key: string): Promise<Buffer>;
  /** As if uploaded to its URL. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  remove(key: string): Promise<void>;
}

export interface Uploading {
  stack: Stack;
  objects: Objects;
  /** Undefined for files on disk. */
  s3: S3 | undefined;
  stop(): Promise<void>;
}

export type StorageName = 'disk' | 'S3';

/** Fast logins, and no limits unless they are tested. */
const env = { LIMIT_UPLOAD: '100000/3600', LIMIT_UPLOAD_CHECK: '100000/3600', LIMIT_REGISTER: '100000/3600' };

/** The stack of a storage: files are on disk if all parts are embedded. */
const stackWith = { disk: 'embedded', S3: 'real' } as const;
const storageNames = (['disk', 'S3'] as const).filter((name) => stackNames.includes(stackWith[name]));

/** The surfaces of a storage, as of a stack. */
export const surfacesOf = (storage: StorageName, forms?: typeof documented) => surfacesOn(stackWith[storage], forms);

/** Runs the same tests with files on disk and with files in S3. */
export function onBothStorages(
  define: (uploading: () => Uploading, name: StorageName) => void,
  changes: Record<string, string> = {},
): void {
  for (const name of storageNames) onStorage(name, define, changes);
}

/** A suite of its own: its hooks concern its tests only. */
export function onStorage(
  name: StorageName,
  define: (uploading: () => Uploading, name: StorageName) => void,
  changes: Record<string, string> = {},
): void {
  if (!storageNames.includes(name)) {
    test.skip(`with files on ${name}`);
    return;
  }
  describe(`with files on ${name}`, () => {
    let uploading: Uploading | undefined;
    beforeAll(async () => {
      uploading = await startUploading(name, changes);
    });
    afterAll(() => uploading?.stop());
    define(() => {
      if (!uploading) throw new Error('the stack did not start');
      return uploading;
    }, name);
  });
}

export async function startUploading(
  name: StorageName,
  changes: Record<string, string> = {},
  instances = 1,
  tree?: string,
): Promise<Uploading> {
  if (name === 'disk') {
    const stack = await startStack('embedded', { env: { ...env, ...changes } });
    const objects = onDisk(join(stack.services[0]?.dataDir ?? '', 'objects'));
    return { stack, s3: undefined, objects, stop: () => stack.stop() };
  }
  if (isMutationRun) outsideMutationRun('S3');
  const s3 = await startS3({ cors: 'API_HOST' in changes });
  const stack = await startStack('real', { env: { ...env, ...s3.env, ...changes }, instances, tree });
  return {
    stack,
    s3,
    objects: { ...s3, has: async (key) => (await s3.keys()).includes(key) },
    async stop() {
      await stack.stop();
      await s3.stop();
    },
  };
}

export const onDisk = (root: string): Objects => ({
  keys: async () =>
    (await readdir(root, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(root.length + 1)),
  unfinished: async () => readdir(join(root, '.parts')).catch(() => []),
  has: (key) =>
    access(join(root, key)).then(
      () => true,
      () => false,
    ),
  read: (key) => readFile(join(root, key)),
  async put(key, bytes) {
    await mkdir(dirname(join(root, key)), { recursive: true });
    await writeFile(join(root, key), bytes);
  },
  remove: (key) => rm(join(root, key)),
});

/** A new user who is logged in over REST. */
export const uploader = ({ stack }: Uploading) => loggedIn({ stack, call: callerOf('rest', stack.url) });

export interface UploadReply {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a black box: what is in it is for the test to say
  body: any;
}

export interface SentImage {
  bytes: Uint8Array;
  contentType?: string;
  filename?: string;
  type?: string;
  visibility?: string;
}

export function imageForm(image: SentImage) {
  const { bytes, contentType = 'image/png', filename = 'image.png', type = 'post', visibility } = image;
  const form = new FormData();
  form.set('file', new File([new Uint8Array(bytes)], filename, { type: contentType }));
  form.set('type', type);
  if (visibility !== undefined) form.set('visibility', visibility);
  return form;
}

/** POST /api/upload/image. */
export const sendImage = (
  uploading: Parameters<typeof sendForm>[0],
  session: string | undefined,
  image: SentImage,
): Promise<UploadReply> => sendForm(uploading, session, imageForm(image));

export async function sendForm(
  { stack }: { stack: Pick<Stack, 'url'> },
  session: string | undefined,
  body: FormData | Uint8Array<ArrayBuffer> | ReadableStream | string,
  headers: Record<string, string> = {},
): Promise<UploadReply> {
  const response = await fetch(`${stack.url}/api/upload/image`, {
    method: 'POST',
    headers: {
      'x-forwarded-for': clientAddress(),
      ...(session !== undefined && { cookie: `auth_session=${session}` }),
      ...headers,
    },
    body,
    ...(body instanceof ReadableStream && { duplex: 'half' }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** A piece of a body of unknown length: RFC 9112 section 7.1. */
const framed = (data: Uint8Array | string) =>
  Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), Buffer.from(data), Buffer.from('\r\n')]);

/**
 * Sends a request to the image path with `first` and `length` more bytes, until the connection closes; resolves to the
 * answer and to the number of bytes sent, including those in socket buffers.
 */
export async function pour({ stack }: Uploading, headers: string[], first: string | Uint8Array, length = 0) {
  const socket = connect(Number(new URL(stack.url).port), '127.0.0.1');
  let answer = '';
  socket.on('data', (data) => {
    answer += data.toString();
  });
  // The answer shows any error.
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const isChunked = headers.includes('Transfer-Encoding: chunked');
  socket.write(`POST /api/upload/image HTTP/1.1\r\nHost: x\r\n${headers.join('\r\n')}\r\n\r\n`);
  socket.write(isChunked ? framed(first) : first);
  const zeros = Buffer.alloc(256 * 1024);
  const piece = isChunked ? framed(zeros) : zeros;
  for (let sent = 0; sent < length && !socket.destroyed; sent += zeros.length) {
    if (!socket.write(piece)) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed]);
  }
  await inTime(closed, { within: 15_000, what: 'the end of the connection' });
  return { answer, sent: socket.bytesWritten };
}

/** The key of an object, from its public URL. */
export const keyOf = (url: string): string => `uploads/${url.slice(url.lastIndexOf('/') + 1)}`;

/** A public URL as reachable from here: localhost may resolve to another address. */
export const reachable = (url: string): string => url.replace('//localhost:', '//127.0.0.1:');

export const put = (url: string, body: Uint8Array, headers: Record<string, string>) =>
  fetch(reachable(url), { method: 'PUT', headers, body: new Uint8Array(body) });

export const unknownKey = () => `uploads/${randomUUID()}.png`;

/** The targets of a process's file descriptors. One may be closed during the read. */
export const openFiles = (pid: number): string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${descriptor}`)];
    } catch {
      return [];
    }
  });
