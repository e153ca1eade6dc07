/**
 * The form of a key: `acct_<id>_<secret><checksum>`, in base62 without padding, so that a double click selects the id or
 * the secret and secret scanners find it. The checksum is the CRC-32 of all before it: a mistyped or made-up key is
 * refused without a query, and a scanner reports only real keys.
 */
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { parse as bytesOfUuid, v7 as uuidv7 } from 'uuid';

export const KEY_PREFIX = 'acct_';

/** In the order of ASCII: the ids are ordered by their time, as UUIDs are. */
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The lengths in base62 of 128, 256 and 32 bits. */
const ID_LENGTH = 22;
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;

const idPattern = new RegExp(`^[0-9A-Za-z]{${ID_LENGTH}}$`);
const keyPattern = new RegExp(
  `^(${KEY_PREFIX}([0-9A-Za-z]{${ID_LENGTH}})_([0-9A-Za-z]{${SECRET_LENGTH}}))([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`,
);

function inBase62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; rest > 0n; rest /= 62n) text = DIGITS[Number(rest % 62n)] + text;
  return text.padStart(length, '0');
}

const numberOf = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);

const checksumOf = (text: string): string => inBase62(BigInt(crc32(text)), CHECKSUM_LENGTH);

/** Other texts match no key. */
export const isKeyId = (text: string): boolean => idPattern.test(text);

/** A new key as its user gets it, with a secret of 256 bits. */
export function newKey(): { id: string; secret: string; key: string } {
  const id = inBase62(numberOf(bytesOfUuid(uuidv7())), ID_LENGTH);
  const secret = inBase62(numberOf(randomBytes(32)), SECRET_LENGTH);
  const text = `${KEY_PREFIX}${id}_${secret}`;
  return { id, secret, key: text + checksumOf(text) };
}

/** Undefined for a text that is no key. */
export function parseKey(key: string): { id: string; secret: string } | undefined {
  const [, text = '', id = '', secret = '', checksum] = keyPattern.exec(key) ?? [];
  return checksum !== undefined && checksum === checksumOf(text) ? { id, secret } : undefined;
}
