import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { headerOf, INDEX_BYTES, PREFIXES } from '../../lib/hash-list.ts';
import { UsageError } from '../failure.ts';

const HEX_DIGITS = 40;
/** The digits of the 52 bits that are stored. */
const [PREFIX_DIGITS, KEY_DIGITS] = [5, 13];
const CHUNK_BYTES = 1 << 20;
const NEWLINE = 0x0a;
/** HASH:COUNT, and room. */
const MAX_LINE = 256;

/** The value of each hexadecimal digit by its code; 255 for others. */
const digits = Uint8Array.from({ length: 256 }, (_, code) => {
  const value = Number.parseInt(String.fromCharCode(code), 16);
  return Number.isNaN(value) ? 255 : value;
});

/**
 * Writes the list to `path` in one pass and with 10 MB of memory, however long it is; it replaces `path` when it is
 * complete. Lines are `HASH` or `HASH:COUNT`, ascending. Resolves to the number of hashes.
 */
export async function buildHashList(input: AsyncIterable<Buffer> | Iterable<Buffer>, path: string): Promise<number> {
  const draft = `${path}.partial`;
  try {
    const count = await write(input, draft);
    const file = await open(draft, 'r+');
    await file.write(headerOf(count), 0, undefined, 0);
    await file.sync();
    await file.close();
    await rename(draft, path);
    return count;
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function write(input: AsyncIterable<Buffer> | Iterable<Buffer>, path: string): Promise<number> {
  const output = createWriteStream(path);
  const ended = finished(output);
  ended.catch(() => undefined);
  const put = async (bytes: Buffer) => {
    if (!output.write(bytes)) await Promise.race([once(output, 'drain'), ended]);
  };
  await put(headerOf(0));

  const counts = new Uint32Array(PREFIXES);
  let chunk = Buffer.alloc(CHUNK_BYTES);
  let used = 0;
  let count = 0;
  let last = -1;
  let lines = 0;

  const add = (bytes: Buffer, from: number, to: number) => {
    lines++;
    if (to - from === 0 || (to - from === 1 && bytes[from] === 0x0d)) return;
    const { prefix, entry } = keyIn(bytes, from, to, lines);
    const key = prefix * 2 ** 32 + entry;
    if (key < last) {
      throw new UsageError(
        `Line ${lines} is out of order. The list must be sorted by hash: \`LC_ALL=C sort\` does it, and downloads of Have I Been Pwned have such a form`,
      );
    }
    if (key === last) return;
    last = key;
    counts[prefix] = (counts[prefix] ?? 0) + 1;
    count++;
    used = chunk.writeUInt32BE(entry, used);
  };
  const flush = async () => {
    await put(chunk.subarray(0, used));
    chunk = Buffer.alloc(CHUNK_BYTES);
    used = 0;
  };

  let rest: Buffer = Buffer.alloc(0);
  for await (const read of input) {
    const bytes = rest.length > 0 ? Buffer.concat([rest, read]) : read;
    let from = 0;
    for (let to = bytes.indexOf(NEWLINE); to >= 0; to = bytes.indexOf(NEWLINE, from)) {
      add(bytes, from, to);
      from = to + 1;
      // Only for a full chunk: a promise for each line would take longer than all other work.
      if (used === CHUNK_BYTES) await flush();
    }
    rest = bytes.subarray(from);
    if (rest.length > MAX_LINE) throw noHash(lines + 1);
  }
  if (rest.length > 0) add(rest, 0, rest.length);
  if (count === 0) throw new UsageError('The list is empty');
  await flush();
  await put(tableOf(counts));
  output.end();
  await ended;
  return count;
}

const noHash = (line: number) =>
  new UsageError(`Line ${line} does not begin with a SHA-1 hash of 40 hexadecimal digits`);

/** The stored bits of the hash in a line. */
function keyIn(bytes: Buffer, from: number, to: number, line: number) {
  let [prefix, entry] = [0, 0];
  for (let i = 0; i < HEX_DIGITS; i++) {
    const digit = from + i < to ? (digits[bytes[from + i] as number] as number) : 255;
    if (digit === 255) throw noHash(line);
    if (i < PREFIX_DIGITS) prefix = prefix * 16 + digit;
    else if (i < KEY_DIGITS) entry = entry * 16 + digit;
  }
  const after = bytes[from + HEX_DIGITS];
  const isEnd = from + HEX_DIGITS >= to || after === 0x3a || after === 0x0d;
  if (!isEnd) throw noHash(line);
  return { prefix, entry };
}

function tableOf(counts: Uint32Array): Buffer {
  const table = Buffer.alloc((PREFIXES + 1) * INDEX_BYTES);
  let index = 0;
  for (let prefix = 0; prefix < PREFIXES; prefix++) {
    table.writeUIntLE(index, prefix * INDEX_BYTES, INDEX_BYTES);
    index += counts[prefix] ?? 0;
  }
  table.writeUIntLE(index, PREFIXES * INDEX_BYTES, INDEX_BYTES);
  return table;
}
