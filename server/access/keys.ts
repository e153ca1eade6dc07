import type { AccessKey } from '../../entities/index.ts';
import type { RecordEvent } from '../accounts/mail/index.ts';
import { changeAsOwner, type Session } from '../accounts/sessions/index.ts';
import type { Account } from '../accounts/users/index.ts';
import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import { hashOf } from '../lib/random-token.ts';
import { columnsOf, type Database, type ReadTables, sql } from '../parts/database/contract.ts';
import { isScope, type Scope } from '../shared/scopes.ts';
import { isKeyId, newKey } from './key-format.ts';

/** Maximum keys per user. */
export const MAX_KEYS = 50;
const DAY_MS = 24 * 60 * 60_000;

const listedFields = ['id', 'name', 'scopes', 'createdAt', 'expiresAt', 'lastUsedAt'] as const;

/** A key without its secret. Times in milliseconds since 1970. */
export type ListedKey = Pick<AccessKey, Exclude<(typeof listedFields)[number], 'scopes'>> & { scopes: Scope[] };

export interface NewKey {
  name: string;
  scopes: readonly Scope[];
  /** Undefined: it does not expire. */
  expiresInDays?: number | undefined;
}

interface Parts {
  database: Database;
  outbox: { wake(): void };
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
}

/** A scope of a newer release is left out. */
export const scopesIn = (list: string): Scope[] => list.split(',').filter(isScope);

const toListed = <Row extends { scopes: string }>({ scopes, ...row }: Row) => ({ ...row, scopes: scopesIn(scopes) });

/** Adds, lists and revokes the keys of a session's user. */
export const createKeys = (parts: Parts) => {
  const { database, record } = parts;
  const { now } = database;

  const listed = (tables: ReadTables, { id, sessionEpoch }: Pick<Account, 'id' | 'sessionEpoch'>) =>
    tables
      .selectFrom('access_keys')
      .select(columnsOf(listedFields))
      .where('user_id', '=', id)
      .where('epoch', '=', sessionEpoch)
      .orderBy('id', 'desc');

  return {
    /** Newest first; also expired ones. */
    list: async (user: Account): Promise<ListedKey[]> =>
      (await database.query((tables) => listed(tables, user).execute())).map(toListed),

    /**
     * Resolves to the key and the text that no other call returns. TOO_MANY_KEYS; UNAUTHENTICATED if the session has
     * ended since.
     */
    async create(
      session: Session,
      { name, scopes, expiresInDays }: NewKey,
      caller: Caller,
    ): Promise<{ key: ListedKey; secret: string }> {
      const { id, secret, key } = newKey();
      const given = [...new Set(scopes)].join(',');
      const created = await changeAsOwner(parts, session, async (_em, tables, user) => {
        const voided = tables.deleteFrom('access_keys').where('user_id', '=', user.id);
        await voided.where('epoch', '<>', user.sessionEpoch).execute();
        const others = await listed(tables, user).execute();
        if (others.length >= MAX_KEYS) throw new ServiceError('TOO_MANY_KEYS');
        await tables
          .insertInto('access_keys')
          .values({
            id,
            user_id: user.id,
            name,
            secret_hash: hashOf(secret),
            scopes: given,
            epoch: user.sessionEpoch,
            created_at: now,
            expires_at: expiresInDays === undefined ? null : sql<number>`${now} + ${expiresInDays * DAY_MS}`,
          })
          .execute();
        await record(tables, user, { kind: 'key-created', details: { id, name, scopes: given } }, caller);
        return listed(tables, user).where('id', '=', id).executeTakeFirstOrThrow();
      });
      return { key: toListed(created), secret: key };
    },

    /** Rejects with NOT_FOUND. */
    revoke: (session: Session, id: string, caller: Caller): Promise<void> =>
      changeAsOwner(parts, session, async (_em, tables, user) => {
        const found = isKeyId(id) ? await listed(tables, user).where('id', '=', id).executeTakeFirst() : undefined;
        if (!found) throw new ServiceError('NOT_FOUND', { message: 'Access key not found' });
        await tables.deleteFrom('access_keys').where('id', '=', id).execute();
        await record(tables, user, { kind: 'key-revoked', details: { id, name: found.name } }, caller);
      }),
  };
};
