/**
 * A list of SHA-1 hashes in a file that is never loaded: a lookup makes two reads, from the page cache
 * (docs/design/credentials.md).
 *
 * Header (32 bytes): magic, version, bits of a prefix, bytes of an entry, 4 of padding, number of entries. Then the
 * entries, ascending: the 32 bits after the first 20. Then, for each of the 2^20 prefixes and their end, the index of its
 * first entry (6 bytes). 52 bits of each hash are stored: of a billion hashes, another one is found with a probability
 * of 1e9 / 2^52, one in 4.5 million. All numbers of entries are big-endian, those of the header and table little-endian.
 */
import { hash as digest } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

const MAGIC = 'SHA1LIST';
const VERSION = 1;
const HEADER_BYTES = 32;
const ENTRY_BYTES = 4;
export const PREFIXES = 2 ** 20;
export const INDEX_BYTES = 6;
/** 64 times what a billion hashes have: a longer one is a damaged table. */
const MAX_BUCKET = 65_536;

export function headerOf(count: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(MAGIC, 'latin1');
  header.writeUInt32LE(VERSION, 8);
  header.writeUInt32LE(Math.log2(PREFIXES), 12);
  header.writeUInt32LE(ENTRY_BYTES, 16);
  header.writeBigUInt64LE(BigInt(count), 24);
  return header;
}

export interface HashList {
  count: number;
  /** Whether the SHA-1 of the text is in the list. Throws if the file cannot be read. */
  has(text: string): boolean;
  close(): void;
}

/** Opens a file of `buildHashList`. Throws for any other file. */
export function openHashList(path: string): HashList {
  const file = openSync(path, 'r');
  try {
    const count = countIn(file);
    const bounds = Buffer.alloc(2 * INDEX_BYTES);
    let bucket = Buffer.alloc(8192);

    const read = (into: Buffer, length: number, position: number) => {
      if (readSync(file, into, 0, length, position) !== length) throw new Error(`${path} is too short`);
    };
    return {
      count,
      has(text) {
        const hash = digest('sha1', text, 'buffer');
        const prefix = hash.readUIntBE(0, 3) >>> 4;
        // Bits 20 to 51.
        const wanted = ((hash.readUInt32BE(2) << 4) | ((hash[6] as number) >>> 4)) >>> 0;
        read(bounds, bounds.length, HEADER_BYTES + count * ENTRY_BYTES + prefix * INDEX_BYTES);
        const first = bounds.readUIntLE(0, INDEX_BYTES);
        const length = bounds.readUIntLE(INDEX_BYTES, INDEX_BYTES) - first;
        if (length < 0 || length > MAX_BUCKET) throw new Error(`${path} is damaged`);
        if (length * ENTRY_BYTES > bucket.length) bucket = Buffer.alloc(length * ENTRY_BYTES);
        if (length > 0) read(bucket, length * ENTRY_BYTES, HEADER_BYTES + first * ENTRY_BYTES);
        return contains(bucket, length, wanted);
      },
      close: () => closeSync(file),
    };
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

function countIn(file: number): number {
  const header = Buffer.alloc(HEADER_BYTES);
  const isWhole = readSync(file, header, 0, HEADER_BYTES, 0) === HEADER_BYTES;
  const count = isWhole ? Number(header.readBigUInt64LE(24)) : 0;
  const size = HEADER_BYTES + count * ENTRY_BYTES + (PREFIXES + 1) * INDEX_BYTES;
  if (!isWhole || !header.equals(headerOf(count)) || fstatSync(file).size !== size) {
    throw new Error('not a list of hashes, of another version, or incomplete');
  }
  return count;
}

function contains(entries: Buffer, length: number, wanted: number): boolean {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const entry = entries.readUInt32BE(middle * ENTRY_BYTES);
    if (entry === wanted) return true;
    if (entry < wanted) low = middle + 1;
    else high = middle;
  }
  return false;
}
