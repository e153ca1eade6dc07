import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { access, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { callerOf } from '../contract/callers.ts';
import { loggedIn } from '../contract/scenario.ts';
import { clientAddress } from '../rig/address.ts';
import { isMutationRun } from '../rig/mutation-run.ts';
import { outsideMutationRun } from '../rig/outside-mutation-run.ts';
import { type S3, startS3 } from '../rig/s3.ts';
import type { Service } from '../rig/service.ts';
import { type Stack, startStack } from '../rig/stack.ts';

/** The objects of the service, seen past it. */
export interface Objects {
  keys(): Promise<string[]>;
  has(key: string): Promise<boolean>;
  read(key: string): Promise<Buffer>;
  /** As if it had come by an address. */
  put(key: string, bytes: Uint8Array): Promise<void>;
}

export interface Uploading {
  stack: Stack;
  objects: Objects;
  /** Undefined where files are kept on disk. */
  s3: S3 | undefined;
}

export type StorageName = 'disk' | 'S3';

/** Quick logins, and no limit where it is not the subject. */
const env = { LIMIT_UPLOAD: '100000/3600', LIMIT_REGISTER: '100000/3600' };

/** Runs the same tests on a service whose files are on disk, and on one whose files are in S3. */
export function onBothStorages(
  define: (uploading: () => Uploading, name: StorageName) => void,
  changes: Record<string, string> = {},
): void {
  describe.each(isMutationRun ? (['disk'] as const) : (['disk', 'S3'] as const))('with files on %s', (name) =>
    onStorage(name, define, changes),
  );
}

export function onStorage(
  name: StorageName,
  define: (uploading: () => Uploading, name: StorageName) => void,
  changes: Record<string, string> = {},
): void {
  let uploading: Uploading | undefined;
  beforeAll(async () => {
    uploading = await startUploading(name, changes);
  });
  afterAll(async () => {
    await uploading?.stack.stop();
    await uploading?.s3?.stop();
  });
  define(() => {
    if (!uploading) throw new Error('the stack did not start');
    return uploading;
  }, name);
}

export async function startUploading(
  name: StorageName,
  changes: Record<string, string> = {},
  instances = 1,
): Promise<Uploading> {
  if (name === 'disk') {
    const stack = await startStack('embedded', { env: { ...env, ...changes } });
    return { stack, s3: undefined, objects: onDisk(join(stack.services[0]?.dataDir ?? '', 'objects')) };
  }
  if (isMutationRun) outsideMutationRun('S3');
  const s3 = await startS3({ cors: 'API_HOST' in changes });
  const stack = await startStack('real', { env: { ...env, ...s3.env, ...changes }, instances });
  return { stack, s3, objects: { ...s3, has: async (key) => (await s3.keys()).includes(key) } };
}

const onDisk = (root: string): Objects => ({
  keys: async () =>
    (await readdir(root, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(root.length + 1)),
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
}

export function imageForm({ bytes, contentType = 'image/png', filename = 'image.png', type = 'post' }: SentImage) {
  const form = new FormData();
  form.set('file', new File([new Uint8Array(bytes)], filename, { type: contentType }));
  form.set('type', type);
  return form;
}

/** POST /api/upload/image. */
export const sendImage = (uploading: Uploading, session: string | undefined, image: SentImage): Promise<UploadReply> =>
  sendForm(uploading, session, imageForm(image));

export async function sendForm(
  { stack }: Uploading,
  session: string | undefined,
  body: FormData | Uint8Array<ArrayBuffer> | string,
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
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** The key of an object, from its public address. */
export const keyOf = (url: string): string => `uploads/${url.slice(url.lastIndexOf('/') + 1)}`;

/** A public address as this machine reaches it: localhost may be another address than the one listened on. */
export const reachable = (url: string): string => url.replace('//localhost:', '//127.0.0.1:');

export const put = (url: string, body: Uint8Array, headers: Record<string, string>) =>
  fetch(reachable(url), { method: 'PUT', headers, body: new Uint8Array(body) });

export const unknownKey = () => `uploads/${randomUUID()}.png`;

/** The service's own process: the one whose data directory it is, and that no shell or npm is. */
export function pidOf({ dataDir }: Service): number {
  if (isMutationRun) outsideMutationRun('a process of the service');
  const pid = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .find((name) => {
      try {
        const isNode = readFileSync(`/proc/${name}/cmdline`, 'utf8').includes('server/main.ts\0');
        return (
          isNode &&
          readFileSync(`/proc/${name}/environ`, 'utf8').includes(`DATA_DIR=${dataDir}\0`) &&
          !readlinkSync(`/proc/${name}/exe`).endsWith('sh')
        );
      } catch {
        return false;
      }
    });
  if (!pid) throw new Error('the service does not run');
  return Number(pid);
}

/** What the descriptors of a process lead to. One may be closed while they are read. */
export const openFiles = (pid: number): string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${descriptor}`)];
    } catch {
      return [];
    }
  });
