/*
 * SHA-256 (FIPS 180-4) of `salt + number` for one number after another. SubtleCrypto would need a promise a number: 20
 * times slower. The blocks of the salt alone are hashed once.
 */

/** ALTCHA's proof of work: the number, at most `maxnumber`, with SHA-256(salt + number) = challenge. */
export interface Puzzle {
  challenge: string;
  salt: string;
  maxnumber: number;
}

/** The first message of the worker. */
export const READY = 'ready';

/** The first 32 bits of the fractional part of `root` of each of the first primes. */
function constants(count: number, root: (prime: number) => number): Uint32Array {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) {
    if (!found.some((_, i) => n % (primes[i] as number) === 0)) {
      primes[found.length] = n;
      found.push((root(n) % 1) * 2 ** 32);
    }
  }
  return Uint32Array.from(found);
}
const primes: number[] = [];
const INITIAL = constants(8, Math.sqrt);
const ROUNDS = constants(64, Math.cbrt);

const BLOCK = 64;
const schedule = new Uint32Array(64);

/** Adds a block to `state`. */
function compress(state: Uint32Array, bytes: Uint8Array, offset: number): void {
  const w = schedule;
  for (let i = 0; i < 16; i++) {
    const at = offset + 4 * i;
    w[i] =
      ((bytes[at] as number) << 24) |
      ((bytes[at + 1] as number) << 16) |
      ((bytes[at + 2] as number) << 8) |
      (bytes[at + 3] as number);
  }
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15] as number;
    const y = w[i - 2] as number;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[i] = ((w[i - 16] as number) + s0 + (w[i - 7] as number) + s1) | 0;
  }
  let a = state[0] as number;
  let b = state[1] as number;
  let c = state[2] as number;
  let d = state[3] as number;
  let e = state[4] as number;
  let f = state[5] as number;
  let g = state[6] as number;
  let h = state[7] as number;
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (ROUNDS[i] as number) + (w[i] as number)) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0] = (state[0] as number) + a;
  state[1] = (state[1] as number) + b;
  state[2] = (state[2] as number) + c;
  state[3] = (state[3] as number) + d;
  state[4] = (state[4] as number) + e;
  state[5] = (state[5] as number) + f;
  state[6] = (state[6] as number) + g;
  state[7] = (state[7] as number) + h;
}

/** Returns a function that tries the next `count` numbers: the solution, `undefined` so far, or null without a solution. */
export function createSearch({ salt, challenge, maxnumber }: Puzzle): (count: number) => number | null | undefined {
  const prefix = new TextEncoder().encode(salt);
  const whole = prefix.length - (prefix.length % BLOCK);
  const start = INITIAL.slice();
  for (let at = 0; at < whole; at += BLOCK) compress(start, prefix, at);
  const target = Uint32Array.from({ length: 8 }, (_, i) => Number.parseInt(challenge.slice(8 * i, 8 * i + 8), 16));
  const rest = prefix.subarray(whole);
  // The rest, up to 16 digits, the end mark and the length.
  const bytes = new Uint8Array(2 * BLOCK);
  const view = new DataView(bytes.buffer);
  const state = new Uint32Array(8);
  let number = 0;

  const isSolution = (): boolean => {
    const digits = String(number);
    const end = rest.length + digits.length;
    const size = end + 9 > BLOCK ? 2 * BLOCK : BLOCK;
    bytes.fill(0);
    bytes.set(rest);
    for (let i = 0; i < digits.length; i++) bytes[rest.length + i] = digits.charCodeAt(i);
    bytes[end] = 0x80;
    view.setUint32(size - 4, (whole + end) * 8);
    state.set(start);
    for (let at = 0; at < size; at += BLOCK) compress(state, bytes, at);
    return state[0] === target[0] && state.every((word, i) => word === target[i]);
  };

  return (count) => {
    for (let i = 0; i < count; i++, number++) {
      if (number > maxnumber) return null;
      if (isSolution()) return number;
    }
    return undefined;
  };
}
