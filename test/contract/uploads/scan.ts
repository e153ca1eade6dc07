import { expect } from 'vitest';
import { malware } from '../../rig/servers/clamd.ts';
import { until } from '../../rig/until.ts';
import { callerOf } from '../rig/callers.ts';
import { put, reachable, type Uploading, uploader } from './storage.ts';

/** Files that a scanner looks at before they are given out. */

export const CLEAN = Buffer.from('%PDF-1.7 the invoice');
export const INFECTED = Buffer.concat([Buffer.from('%PDF-1.7 '), malware]);
const PDF = { 'content-type': 'application/pdf' };

/** The status and the body of a GET. */
export const read = async (url: string) => {
  const response = await fetch(reachable(url));
  return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
};

/** A user, the files that the user sends, and what becomes of them. */
export async function sender(uploading: Uploading, surface: 'rest' | 'trpc' = 'rest', url = uploading.stack.url) {
  const person = await uploader(uploading);
  const { session } = person;
  const call = callerOf(surface, url);
  const of = (procedure: string, input: object = {}) => call(procedure, input, { session });
  const { database } = uploading.stack;
  const rowOf = async (key: string) => {
    const [row] = await database<{ state: string; scan: string | null; due_at: number | null }>(
      'select state, scan, due_at from uploads where object_key = ?',
      [key],
    );
    return row;
  };
  /** Declares a file. */
  const declared = async (size: number, visibility = 'public') => {
    const input = { filename: 'a.pdf', contentType: 'application/pdf', size, visibility };
    const { data } = await of('upload.presign', input);
    const { key, presignedUrl, publicUrl } = data as Record<string, string> & { key: string };
    return { key, name: key.split('/')[1] ?? '', presignedUrl: presignedUrl ?? '', publicUrl: publicUrl ?? '' };
  };
  const send = async (address: string, bytes: Buffer) => (await put(address, bytes, PDF)).status;
  /** The file in the list. */
  const listed = async (key: string) =>
    (await of('upload.list')).data.data.find((each: { key: string }) => each.key === key);

  return {
    ...person,
    call,
    of,
    rowOf,
    declared,
    send,
    listed,

    /** Declares a file, sends it, and says that it has arrived. */
    async sent(bytes: Buffer = CLEAN, visibility = 'public') {
      const file = await declared(bytes.length, visibility);
      expect(await send(file.presignedUrl, bytes)).toBe(200);
      expect((await of('upload.confirm', { key: file.key })).status).toBe(200);
      return file;
    },

    /** Resolves once the file has this state in the list. Retries come at once. */
    async becomes(key: string, state: string) {
      await until(
        async () => {
          if ((await listed(key))?.state === state) return true;
          const retry = "update uploads set due_at = 1 where object_key = ? and state = 'pending' and due_at > ?";
          await database(retry, [key, Date.now() + 2000]);
          return false;
        },
        { what: `the state ${state}`, within: 20_000, every: 100 },
      );
    },

    /** As when the address of the file has expired for so long. Resolves after the inspection. */
    async inspected(key: string, expiredForMs: number) {
      await database('update uploads set expires_at = ?, due_at = 1, variants_until = null where object_key = ?', [
        Date.now() - expiredForMs,
        key,
      ]);
      await until(async () => {
        const row = await rowOf(key);
        return !row || row.due_at === null || Number(row.due_at) > Date.now() + 2 * 60_000;
      });
    },
  };
}
