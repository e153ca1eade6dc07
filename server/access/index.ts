/**
 * Who calls with a bearer credential (RFC 6750) or a token that is bound to a key (RFC 9449), and what it allows. Access
 * keys are opaque and stored here; other values are tokens of applications.
 */
import { timingSafeEqual } from 'node:crypto';
import type { RecordEvent } from '../accounts/mail/index.ts';
import type { Session } from '../accounts/sessions/index.ts';
import type { Users } from '../accounts/users/index.ts';
import type { Credential, Proof } from '../lib/credential.ts';
import { hashOf } from '../lib/random-token.ts';
import type { Database } from '../parts/database/contract.ts';
import { isScope, type Scope } from '../shared/scopes.ts';
import { KEY_PREFIX, parseKey } from './key-format.ts';
import { createKeyRows } from './key-rows.ts';
import { createKeys, scopesIn } from './keys.ts';

export { isKeyId, KEY_PREFIX } from './key-format.ts';
export { type ListedKey, MAX_KEYS } from './keys.ts';

/** The expiry of a key without one: the end of the year 9999. */
const NEVER = Date.UTC(10_000, 0) - 1000;

/**
 * Checks a token of an application. Undefined unless its grant is valid in the user's current epoch. Times in
 * milliseconds since 1970. Names of unknown scopes are ignored. Rejects with UNAUTHENTICATED for an invalid proof.
 */
export type TokenResolver = (
  token: string,
  proof?: Proof,
) => Promise<
  | {
      userId: string;
      scopes: readonly string[];
      applicationId: string;
      grantId: string;
      issuedAt: number;
      expiresAt: number;
    }
  | undefined
>;

/** The caller behind a bearer credential. Its session has no id, so it is never recent. */
interface BearerSession extends Session {
  id: undefined;
  fresh: false;
  scopes: readonly Scope[];
  credential: { kind: 'key'; id: string } | { kind: 'token'; applicationId: string; grantId: string };
}

interface Parts {
  database: Database;
  users: Pick<Users, 'find' | 'customFields'>;
  outbox: { wake(): void };
  record: RecordEvent;
  /** Undefined without applications. */
  resolveToken?: TokenResolver | undefined;
}

const isSame = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

/** Personal access keys, and the check of credentials. */
export function createAccess({ database, users, resolveToken, ...parts }: Parts) {
  const rows = createKeyRows(database, users.customFields);

  const byKey = async (text: string): Promise<BearerSession | null> => {
    const parsed = parseKey(text);
    const found = parsed && (await rows.find(parsed.id));
    if (!found || !isSame(found.secretHash, hashOf(parsed.secret))) return null;
    const { keyId: id, user, scopes, keyCreatedAt: createdAt, expiresAt, isUseDue } = found;
    if (isUseDue === 1) rows.recordUse(id);
    return {
      id: undefined,
      user,
      createdAt,
      expiresAt: expiresAt ?? NEVER,
      fresh: false,
      scopes: scopesIn(scopes),
      credential: { kind: 'key', id },
    };
  };

  const byToken = async (text: string, proof?: Proof): Promise<BearerSession | null> => {
    const token = await resolveToken?.(text, proof);
    const user = token && (await users.find(token.userId));
    if (!user) return null;
    const { scopes, applicationId, grantId, issuedAt: createdAt, expiresAt } = token;
    const credential = { kind: 'token', applicationId, grantId } as const;
    return { id: undefined, user, createdAt, expiresAt, fresh: false, scopes: scopes.filter(isScope), credential };
  };

  return {
    keys: createKeys({ database, ...parts }),

    /** The caller by a credential; null if it is invalid. Keys have no proof. Rejects if it cannot be checked. */
    async resolve({ token, proof }: Credential): Promise<BearerSession | null> {
      if (!token.startsWith(KEY_PREFIX)) return byToken(token, proof);
      return proof ? null : byKey(token);
    },
  };
}

export type Access = ReturnType<typeof createAccess>;
