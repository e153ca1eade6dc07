import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildHashList } from '../../../server/cli/breached-passwords/build.ts';
import { openHashList } from '../../../server/lib/hash-list.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex').toUpperCase();

/** The text in pieces that end anywhere. */
async function* pieces(text: string, size = 1000): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

let directory: string;
let names = 0;
const newPath = () => join(directory, `list-${++names}`);
beforeAll(async () => {
  directory = temporaryDirectory('hash-list');
});

async function listOf(text: string, size?: number) {
  const path = newPath();
  const count = await buildHashList(pieces(text, size), path);
  return { path, count, list: openHashList(path) };
}

const passwords = Array.from({ length: 50_000 }, (_, i) => `password-${i}`);
const sorted = passwords.map(sha1).sort();

describe('a list of 50,000 hashes', () => {
  let built: Awaited<ReturnType<typeof listOf>>;
  beforeAll(async () => {
    built = await listOf(`${sorted.map((hash, i) => `${hash}:${i}`).join('\r\n')}\r\n`);
  });
  afterAll(() => built.list.close());

  test('has every one of them', () => {
    expect(built.count).toBe(50_000);
    expect(built.list.count).toBe(50_000);
    expect(passwords.filter((password) => !built.list.has(password))).toEqual([]);
  });

  test('has none of 50,000 others', () => {
    const others = Array.from({ length: 50_000 }, () => randomBytes(12).toString('base64'));
    expect(others.filter((other) => built.list.has(other))).toEqual([]);
  });

  test('takes four bytes a hash and a table', () => {
    expect(statSync(built.path).size).toBe(32 + 50_000 * 4 + (2 ** 20 + 1) * 6);
  });
});

test.each([
  ['the first and the last hash that there can be', `${'0'.repeat(40)}\n${'F'.repeat(40)}`, 2],
  ['lower case, empty lines and a line twice', `${sha1('a').toLowerCase()}\n\n${sha1('a')}:5\n`, 1],
])('a list may have %s', async (_, text, count) => {
  const { list, count: built } = await listOf(text, 7);
  expect(built).toBe(count);
  list.close();
});

test.each([
  ['out of order', `${'F'.repeat(40)}\n${'0'.repeat(40)}\n`, /Line 2 is out of order.*sort/],
  ['no hash', `${'0'.repeat(40)}\nhello\n`, /Line 2 does not begin with a SHA-1 hash/],
  ['too long', `${'0'.repeat(41)}\n`, /Line 1 does not begin/],
  ['without an end', '0'.repeat(5000), /Line 1 does not begin/],
  ['empty', '\n\n', /The list is empty/],
])('a list that is %s is refused, and an earlier file stays', async (_, text, message) => {
  const path = newPath();
  writeFileSync(path, 'earlier');
  await expect(buildHashList(pieces(text), path)).rejects.toThrow(message);
  expect(readFileSync(path, 'utf8')).toBe('earlier');
});

test('a file that is cut off, of another version, or another file is not opened', async () => {
  const { path, list } = await listOf(`${sorted.slice(0, 100).join('\n')}\n`);
  list.close();
  const bytes = readFileSync(path);
  truncateSync(path, bytes.length - 1);
  expect(() => openHashList(path)).toThrow('incomplete');
  bytes.writeUInt32LE(2, 8);
  writeFileSync(path, bytes);
  expect(() => openHashList(path)).toThrow('of another version');
  writeFileSync(path, 'short');
  expect(() => openHashList(path)).toThrow('not a list of hashes');
});

test('a damaged table is an error, not an answer', async () => {
  const { path, list } = await listOf(`${sha1('a')}\n`);
  list.close();
  const bytes = readFileSync(path);
  // After header and entry: each index is smaller than the one before.
  for (let at = 36, index = 2 ** 20; at < bytes.length; at += 6, index--) bytes.writeUIntLE(index, at, 6);
  writeFileSync(path, bytes);
  const damaged = openHashList(path);
  expect(() => damaged.has('a')).toThrow('damaged');
  damaged.close();
});
