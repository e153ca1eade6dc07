import { createPublicKey, type JsonWebKeyInput } from 'node:crypto';
import { z } from 'zod';

const member = z.string().max(1024).optional();

/** The members of a public JWK that are stored (RFC 7517, RFC 7518 section 6, RFC 8037). */
export const publicKey = z.object({
  kty: z.string().meta({ description: '`EC` (P-256), `OKP` (Ed25519) or `RSA` (2048 to 4096 bits)' }),
  crv: member,
  x: member,
  y: member,
  n: member,
  e: member,
  kid: z
    .string()
    .regex(/^[!-~]{1,64}$/, 'Must be 1 to 64 ASCII characters')
    .optional(),
  alg: member,
  use: member,
});
export type PublicKey = z.output<typeof publicKey>;

const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];
const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 4096;
const EXPONENT = 65537n;

type Algorithm = 'ES256' | 'EdDSA' | 'Ed25519' | 'RS256' | 'PS256';
/** The algorithms of each type of key. */
const algorithms: Record<string, readonly Algorithm[]> = {
  'EC P-256': ['ES256'],
  'OKP Ed25519': ['EdDSA', 'Ed25519'],
  RSA: ['RS256', 'PS256'],
};
export const assertionAlgorithms = Object.values(algorithms).flat();

const messages = {
  not_allowed: 'Applications of this kind have no keys',
  required: 'An application that has keys needs one',
  private_key: 'Must be a public key: this one contains private members and must not be used any more',
  symmetric_key: 'Must be a public key, not a shared secret',
  unknown_key_type: 'Must be a key of the type EC (P-256), OKP (Ed25519) or RSA',
  not_for_signatures: 'Must be a key for signatures by ES256, EdDSA, RS256 or PS256',
  weak_key: `An RSA key must have ${MIN_RSA_BITS} to ${MAX_RSA_BITS} bits and the exponent 65537`,
  malformed: 'Must be a valid JSON Web Key',
} as const;

type KeyProblem = keyof typeof messages;

function problemOf(key: PublicKey): KeyProblem | undefined {
  if (key.kty === 'oct') return 'symmetric_key';
  if (privateMembers.some((member) => member in key)) return 'private_key';
  const known = algorithms[[key.kty, ...(key.kty === 'RSA' ? [] : [key.crv])].join(' ')];
  if (!known) return 'unknown_key_type';
  if ((key.use ?? 'sig') !== 'sig' || (key.alg !== undefined && !known.some((alg) => alg === key.alg)))
    return 'not_for_signatures';
  try {
    const { modulusLength: bits, publicExponent } = imported(key).asymmetricKeyDetails ?? {};
    const isWeak = bits !== undefined && (bits < MIN_RSA_BITS || bits > MAX_RSA_BITS || publicExponent !== EXPONENT);
    return isWeak ? 'weak_key' : undefined;
  } catch {
    return 'malformed';
  }
}

const imported = (key: PublicKey) => createPublicKey({ key: key as JsonWebKeyInput['key'], format: 'jwk' });

/** The members that the type of the key has, in their only encoding. */
export const toStored = ({ kid, alg, use, ...key }: PublicKey): PublicKey =>
  publicKey.parse({ ...imported(key).export({ format: 'jwk' }), kid, alg, use });

interface Keys {
  keys: readonly PublicKey[];
  isAllowed: boolean;
  isRequired: boolean;
}

/** Why an application may not have these keys; undefined if it may. */
export function problemOfKeys({
  keys,
  isAllowed,
  isRequired,
}: Keys): { message: string; rule: KeyProblem } | undefined {
  const rule =
    keys.length === 0
      ? isRequired
        ? 'required'
        : undefined
      : isAllowed
        ? keys.map(problemOf).find((problem) => problem !== undefined)
        : 'not_allowed';
  return rule && { rule, message: messages[rule] };
}
