import { randomInt } from 'node:crypto';
import fc from 'fast-check';

/** FUZZ_SEED=… repeats a run. */
export const seed = Number(process.env['FUZZ_SEED'] ?? randomInt(2 ** 31));

/** FUZZ_FACTOR=… multiplies the length of every randomised test. */
export const factor = Number(process.env['FUZZ_FACTOR'] ?? 1);

/** That of vitest.config.ts, for a test of this many cases. */
export const timeLimit = 900_000 * Math.max(1, factor);

/** How a property is checked: a failure prints the seed and the smallest failing case. */
export const cases = (numRuns: number) => ({ seed, numRuns: Math.ceil(numRuns * factor) });

/** Any code point, including lone surrogates. The library's own unit `binary` takes two seconds to start. */
export const anyCharacter = fc.integer({ min: 0, max: 0x10ffff }).map((point) => String.fromCodePoint(point));
