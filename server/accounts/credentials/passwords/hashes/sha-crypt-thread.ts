import { hash } from 'node:crypto';
import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { HASH_PRIORITY } from '../pool-threads.ts';

/** A worker thread that computes sha-crypt hashes, one at a time. */

export interface ShaCryptTask {
  digest: 'sha256' | 'sha512';
  password: string;
  salt: string;
  rounds: number;
}

const alphabet = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Comments give the step numbers of the specification. */
function shaCryptHash({ digest, password, salt: saltText, rounds }: ShaCryptTask): string {
  const sum = (...parts: Buffer[]) => hash(digest, Buffer.concat(parts), 'buffer');
  const [key, salt] = [Buffer.from(password), Buffer.from(saltText)];
  // Steps 4 to 8.
  const alternate = sum(key, salt, key);
  const size = alternate.length;
  // Steps 9 to 12: each bit of the length, lowest first.
  const bits = key.length === 0 ? [] : [...key.length.toString(2)].reverse();
  const first = sum(key, salt, repeated(alternate, key.length), ...bits.map((bit) => (bit === '1' ? alternate : key)));
  // Steps 13 to 16.
  const p = repeated(sum(...Array<Buffer>(key.length).fill(key)), key.length);
  // Steps 17 to 20.
  const s = repeated(sum(...Array<Buffer>(16 + (first[0] ?? 0)).fill(salt)), salt.length);
  // Step 21: the input of a round depends on its number modulo 2, 3 and 7, with the previous hash at one end.
  const inputs = Array.from({ length: 2 * 3 * 7 }, (_, round) => {
    const isOdd = round % 2 === 1;
    const middle = [...(round % 3 === 0 ? [] : [s]), ...(round % 7 === 0 ? [] : [p])];
    const former = Buffer.alloc(size);
    const bytes = Buffer.concat(isOdd ? [p, ...middle, former] : [former, ...middle, p]);
    return { bytes, at: isOdd ? bytes.length - size : 0 };
  });
  let current = first;
  for (let round = 0; round < rounds; ) {
    for (const { bytes, at } of inputs.slice(0, rounds - round)) {
      current.copy(bytes, at);
      current = hash(digest, bytes, 'buffer');
      round++;
    }
  }
  return encoded(current);
}

/** The first `length` bytes of the repeated text. */
const repeated = (bytes: Buffer, length: number): Buffer => Buffer.alloc(length, bytes);

/** Step 22: three bytes become four characters in a permuted order. The last group has one or two bytes. */
function encoded(bytes: Buffer): string {
  const third = Math.floor(bytes.length / 3);
  // The byte order within groups rotates: SHA-512 by one step, SHA-256 by two.
  const step = bytes.length === 64 ? 1 : 2;
  const groups = Array.from({ length: third }, (_, i) =>
    [0, 1, 2].map((place) => bytes[i + third * ((place + i * step) % 3)] ?? 0),
  );
  const rest = [...bytes.subarray(3 * third)].reverse();
  return groups.map((group) => characters(group, 4)).join('') + characters(rest, rest.length + 1);
}

function characters(group: number[], count: number): string {
  const value = group.reduce((sum, byte) => sum * 256 + byte, 0);
  return Array.from({ length: count }, (_, i) => alphabet[(value >> (6 * i)) & 63]).join('');
}

// Sets the priority of this thread only, which is possible only on Linux.
if (process.platform === 'linux') {
  try {
    setPriority(HASH_PRIORITY);
  } catch {
    // The service already has a lower priority; hashing works without the change.
  }
}
parentPort?.on('message', (task: ShaCryptTask) => parentPort?.postMessage(shaCryptHash(task)));
