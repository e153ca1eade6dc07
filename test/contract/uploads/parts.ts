import { hash } from 'node:crypto';
import { expect } from 'vitest';
import { callerOf } from '../rig/callers.ts';
import { reachable, type Uploading, uploader } from './storage.ts';

/** Users who send files above 100 MB in parts. */

const MEGABYTE = 1024 ** 2;
export const HOUR = 3_600_000;
export const PART = 5 * MEGABYTE;
/** One byte more than what is sent in one piece: 21 parts, the last of one byte. */
export const SIZE = 100 * MEGABYTE + 1;
export const COUNT = 21;
export const QUOTA = 3 * SIZE;

const content = (start: string) => Buffer.concat([Buffer.from(start), Buffer.alloc(PART - start.length, 'content ')]);
export const pdf = content('%PDF-1.7');
export const page = content('<!doctype html>');
export const last = Buffer.from('!');
export const whole = hash('sha256', Buffer.concat([...Array.from({ length: COUNT - 1 }, () => pdf), last]));

interface Address {
  part: number;
  size: number;
  presignedUrl: string;
}

export const send = async (url: string, body: Uint8Array, method = 'PUT') =>
  (await fetch(reachable(url), { method, body: new Uint8Array(body) })).status;

export async function person(uploading: Uploading, surface: 'rest' | 'trpc') {
  const { id, session } = await uploader(uploading);
  const call = callerOf(surface, uploading.stack.url);
  const of = (procedure: string, input: object) => call(procedure, input, { session });
  const addresses = async (key: string, parts: number[]): Promise<Address[]> => {
    const { data, code } = await of('upload.presignParts', { key, parts });
    expect(code).toBeUndefined();
    return data.addresses;
  };
  const sendParts = async (key: string, parts: number[], bytes = pdf) => {
    const found = await addresses(key, parts);
    return Promise.all(found.map(({ presignedUrl, size }) => send(presignedUrl, size === 1 ? last : bytes)));
  };
  return {
    id,
    of,
    addresses,
    sendParts,
    /** Sends a file; its first part may be another. */
    async sendAll(key: string, first = pdf) {
      expect(await sendParts(key, [1], first)).toEqual([200]);
      const others = Array.from({ length: COUNT - 1 }, (_, i) => COUNT - i);
      expect(new Set(await sendParts(key, others))).toEqual(new Set([200]));
    },
    async declare(change: object = {}) {
      const { data, code } = await of('upload.presign', {
        filename: 'a.pdf',
        contentType: 'application/pdf',
        size: SIZE,
        ...change,
      });
      expect(code).toBeUndefined();
      return data;
    },
    usage: async () => (await of('upload.usage', {})).data,
    list: async () => (await of('upload.list', {})).data.data,
  };
}
