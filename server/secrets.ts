import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';

/** The purposes of keys derived from APP_SECRET; labels of different purposes never collide. */
type Label =
  | `one-time-token:${string}`
  | `put-object\n${string}`
  | `put-part\n${string}`
  | `get-object\n${string}`
  | `dev-idp:${string}`
  | `known-device:${string}`
  | 'challenge'
  | `sealed:${SealedPurpose}:${'key' | 'key-id'}`;

/** The purposes of encryption. */
type SealedPurpose = 'totp' | 'webhook' | 'signing-key';

export interface Secrets {
  /**
   * 32 bytes in base64url for a label, first under the current secret, which makes everything new, then under each
   * former one, accepted until expiry.
   */
  derive(label: Label): [current: string, ...former: string[]];
  /** Encrypts a text under the current secret for one `owner`, the id of a user, webhook or key: rows cannot be swapped. */
  seal(purpose: SealedPurpose, owner: string, text: string): string;
  /**
   * Decrypts a text. `isCurrent` is false under a former secret: encrypt it again. Undefined for an unknown secret or a
   * modified text.
   */
  open(purpose: SealedPurpose, owner: string, sealed: string): { text: string; isCurrent: boolean } | undefined;
}

/** The parts of APP_SECRET, the current one first. */
export type SecretParts = readonly [string, ...string[]];

const CIPHER = 'aes-256-gcm';
/** NIST SP 800-38D section 8.2: 96 bits. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_CHARACTERS = 8;

export function createSecrets([current, ...former]: SecretParts): Secrets {
  const derive: Secrets['derive'] = (label) => {
    const under = (secret: string) => createHmac('sha256', secret).update(label).digest('base64url');
    return [under(current), ...former.map(under)];
  };
  const keysOf = (purpose: SealedPurpose) => {
    const ids = derive(`sealed:${purpose}:key-id`);
    return derive(`sealed:${purpose}:key`).map((key, i) => ({
      id: (ids[i] as string).slice(0, KEY_ID_CHARACTERS),
      key: Buffer.from(key, 'base64url'),
    }));
  };

  return {
    derive,

    seal(purpose, owner, text) {
      const [{ id, key }] = keysOf(purpose) as [{ id: string; key: Buffer }];
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(owner));
      const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return `${id}.${Buffer.concat([nonce, cipher.getAuthTag(), encrypted]).toString('base64url')}`;
    },

    open(purpose, owner, sealed) {
      const [keyId, content = ''] = sealed.split('.', 2);
      const keys = keysOf(purpose);
      const index = keys.findIndex(({ id }) => id === keyId);
      const bytes = Buffer.from(content, 'base64url');
      const found = keys[index];
      if (!found || bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
      const [nonce, rest] = [bytes.subarray(0, NONCE_BYTES), bytes.subarray(NONCE_BYTES)];
      const decipher = createDecipheriv(CIPHER, found.key, nonce, { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(owner))
        .setAuthTag(rest.subarray(0, TAG_BYTES));
      try {
        const text = decipher.update(rest.subarray(TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
        return { text, isCurrent: index === 0 };
      } catch {
        return undefined;
      }
    },
  };
}
