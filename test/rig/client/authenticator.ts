import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/**
 * A software authenticator (WebAuthn Level 3) with its browser: ES256, discoverable credentials, and lies on demand.
 * on demand.
 */

/** Replacements in the statements of authenticator or browser. */
export interface Lies {
  origin?: string;
  rpId?: string;
  challenge?: string;
  type?: string;
  crossOrigin?: boolean;
  userPresent?: boolean;
  userVerified?: boolean;
  backupEligible?: boolean;
  backedUp?: boolean;
  signCount?: number;
  userHandle?: string | null;
  aaguid?: string;
  /** A credential id other than the signed one. */
  id?: string;
  /** The bytes of a new credential's id. */
  credentialId?: Buffer;
  /** Replaces the COSE key. */
  publicKey?: Cbor;
  /** `self`: signed by the new key. */
  attestation?: 'self' | { fmt: string; attStmt: Map<string, Cbor> };
}

/** CBOR values (RFC 8949), as far as attestations need them. */
export type Cbor = number | string | Buffer | Cbor[] | Map<number | string, Cbor>;

function head(major: number, value: number): Buffer {
  if (value < 24) return Buffer.from([(major << 5) | value]);
  if (value < 0x100) return Buffer.from([(major << 5) | 24, value]);
  const long = Buffer.from([(major << 5) | 25, 0, 0]);
  long.writeUInt16BE(value, 1);
  return long;
}

export function cbor(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value]);
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(cbor)]);
  return Buffer.concat([head(5, value.size), ...[...value].flat().map((one) => cbor(one as Cbor))]);
}

const sha256 = (data: Buffer | string) => createHash('sha256').update(data).digest();
const base64url = (data: Buffer | string) => Buffer.from(data).toString('base64url');

/** COSE_Key of ES256 (RFC 9053 section 2.1). */
function coseKey(key: KeyObject): Cbor {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return new Map<number, Cbor>([
    [1, 2],
    [3, -7],
    [-1, 1],
    [-2, Buffer.from(x, 'base64url')],
    [-3, Buffer.from(y, 'base64url')],
  ]);
}

interface CreationOptions {
  challenge: string;
  rp: { id: string };
  user: { id: string };
}

interface RequestOptions {
  challenge: string;
  rpId: string;
}

const NO_AAGUID = '00000000-0000-0000-0000-000000000000';

/** One passkey: created by `register`, then used by `assert`. `origin` is that of its browser. */
export class Authenticator {
  readonly #origin: string;
  #key = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  #userHandle = '';
  credentialId: Buffer = randomBytes(16);
  /** Raised by each use; 0 counts nothing, like synchronized passkeys. */
  signCount: number;

  constructor(origin: string, { signCount = 0 } = {}) {
    this.#origin = origin;
    this.signCount = signCount;
  }

  /** Another authenticator with the same passkey and count: a clone. */
  clone(): Authenticator {
    const clone = new Authenticator(this.#origin, { signCount: this.signCount });
    clone.#key = this.#key;
    clone.#userHandle = this.#userHandle;
    clone.credentialId = this.credentialId;
    return clone;
  }

  #clientData(type: string, challenge: string, lies: Lies): Buffer {
    return Buffer.from(
      JSON.stringify({
        type: lies.type ?? type,
        challenge: lies.challenge ?? challenge,
        origin: lies.origin ?? this.#origin,
        crossOrigin: lies.crossOrigin ?? false,
      }),
    );
  }

  /** Authenticator data (section 6.1). */
  #data(rpId: string, lies: Lies, attested?: Buffer): Buffer {
    const { userPresent = true, userVerified = true, backupEligible = true, backedUp = true } = lies;
    const flags = [userPresent, false, userVerified, backupEligible, backedUp, false, attested !== undefined];
    const count = Buffer.alloc(4);
    count.writeUInt32BE(lies.signCount ?? this.signCount);
    return Buffer.concat([
      sha256(lies.rpId ?? rpId),
      Buffer.from([flags.reduce((bits, flag, i) => bits | (Number(flag) << i), 0)]),
      count,
      attested ?? Buffer.alloc(0),
    ]);
  }

  #sign(data: Buffer, clientData: Buffer): Buffer {
    return sign('sha256', Buffer.concat([data, sha256(clientData)]), this.#key.privateKey);
  }

  #attestation({ attestation }: Lies, data: Buffer, clientData: Buffer) {
    if (attestation === undefined) return { fmt: 'none', attStmt: new Map<string, Cbor>() };
    if (attestation !== 'self') return attestation;
    const statement: [string, Cbor][] = [
      ['alg', -7],
      ['sig', this.#sign(data, clientData)],
    ];
    return { fmt: 'packed', attStmt: new Map(statement) };
  }

  /** RegistrationResponseJSON. */
  register({ challenge, rp, user }: CreationOptions, lies: Lies = {}) {
    this.#userHandle = user.id;
    this.credentialId = lies.credentialId ?? this.credentialId;
    const length = Buffer.alloc(2);
    length.writeUInt16BE(this.credentialId.length);
    const attested = Buffer.concat([
      Buffer.from((lies.aaguid ?? NO_AAGUID).replaceAll('-', ''), 'hex'),
      length,
      this.credentialId,
      cbor(lies.publicKey ?? coseKey(this.#key.publicKey)),
    ]);
    const clientData = this.#clientData('webauthn.create', challenge, lies);
    const authData = this.#data(rp.id, lies, attested);
    const { fmt, attStmt } = this.#attestation(lies, authData, clientData);
    const attestationObject = cbor(
      new Map<string, Cbor>([
        ['fmt', fmt],
        ['attStmt', attStmt],
        ['authData', authData],
      ]),
    );
    return this.#credential(
      lies,
      { credProps: { rk: true } },
      {
        clientDataJSON: base64url(clientData),
        attestationObject: base64url(attestationObject),
        transports: ['internal', 'hybrid'],
      },
    );
  }

  /** AuthenticationResponseJSON. */
  assert({ challenge, rpId }: RequestOptions, lies: Lies = {}) {
    if (this.signCount > 0) this.signCount++;
    const clientData = this.#clientData('webauthn.get', challenge, lies);
    const data = this.#data(rpId, lies);
    return this.#credential(
      lies,
      {},
      {
        clientDataJSON: base64url(clientData),
        authenticatorData: base64url(data),
        signature: base64url(this.#sign(data, clientData)),
        userHandle: lies.userHandle === undefined ? this.#userHandle : lies.userHandle,
      },
    );
  }

  /** PublicKeyCredential as JSON. */
  #credential<Extensions, Response>(lies: Lies, clientExtensionResults: Extensions, response: Response) {
    const id = lies.id ?? base64url(this.credentialId);
    return {
      id,
      rawId: id,
      type: 'public-key',
      authenticatorAttachment: 'platform',
      clientExtensionResults,
      response,
    };
  }
}
