/**
 * Authorization codes and refresh tokens: rows of a grant. A conditional update decides who uses one, so that it is used
 * once on all instances; a second use ends the grant (RFC 9700 sections 2.1.1 and 4.14.2).
 */
import type { AdapterPayload } from 'oidc-provider';
import { z } from 'zod';
import { hashOf } from '../lib/random-token.ts';
import { type AllTables, type Database, prepared, sql } from '../parts/database/contract.ts';
import { type FoundGrant, foundGrants, type GrantRow, toFound, wordsIn } from './grants.ts';
import { OFFLINE } from './scopes.ts';
import { unexpired } from './short-lived.ts';

/** The answer to a refresh may be lost: the same sender may repeat it within this time. */
const REPEATED_MS = 10_000;

export type ArtifactKind = 'AuthorizationCode' | 'RefreshToken';

const isPayload = (value: unknown) => typeof value === 'object' && value !== null;
const storedPayload = z.custom<AdapterPayload>(isPayload);

type ArtifactRow = GrantRow & { payload: string; consumedAt: number | null; isRepeated: number };

/** A valid code or token, and its grant as of the same read. */
interface FoundArtifact {
  payload: AdapterPayload;
  grant: FoundGrant;
}

interface Use {
  /** The client address. */
  sender: string;
  /** The token that the new one replaces. */
  replaced?: string | undefined;
  /** Whether to record a use of the grant. */
  isUseDue?: boolean | undefined;
}

export const createArtifacts = (database: Database, kind: ArtifactKind) => {
  const { now } = database;
  const keyOf = (token: string) => hashOf(`${kind}:${token}`);
  const mayRepeat = kind === 'RefreshToken';
  /** 1 for a refresh token that this sender has used just now. */
  const isRepeated = (sender: string) =>
    mayRepeat
      ? sql<number>`coalesce(consumed_by = ${hashOf(sender)} and consumed_at > ${now} - ${sql.lit(REPEATED_MS)}, 0)`
      : sql<number>`0`;
  const rowsByKey = prepared<ArtifactRow>();

  /** Resolves to false if it was used before: end its grant. */
  const use = async (tables: AllTables, token: string, sender: string): Promise<boolean> => {
    const { numUpdatedRows } = await tables
      .updateTable('oauth_artifacts')
      .set({ consumed_at: now, consumed_by: hashOf(sender) })
      .where('id', '=', keyOf(token))
      .where('consumed_at', 'is', null)
      .executeTakeFirst();
    if (numUpdatedRows === 1n) return true;
    const row = await tables
      .selectFrom('oauth_artifacts')
      .select(isRepeated(sender).as('isRepeated'))
      .where('id', '=', keyOf(token))
      .executeTakeFirst();
    return row?.isRepeated === 1;
  };

  return {
    /** Stores it and uses the one that it replaces, both or neither. */
    insert: (
      token: string,
      { jti: _, ...payload }: AdapterPayload,
      lifeMs: number,
      { sender, replaced, isUseDue = false }: Use,
    ): Promise<'stored' | 'grant ended' | 'already used'> =>
      database.change(async (tables) => {
        const grantId = payload.grantId ?? '';
        if (replaced !== undefined && !(await use(tables, replaced, sender))) return 'already used';
        if (isUseDue) await tables.updateTable('grants').set({ last_used_at: now }).where('id', '=', grantId).execute();
        const { numInsertedOrUpdatedRows } = await tables
          .insertInto('oauth_artifacts')
          .columns(['id', 'grant_id', 'payload', 'expires_at'])
          .expression((builder) =>
            builder
              .selectFrom('grants')
              .select([
                sql<string>`${keyOf(token)}`.as('id'),
                'grants.id as grant_id',
                sql<string>`${JSON.stringify(payload)}`.as('payload'),
                sql<number>`${now} + ${lifeMs}`.as('expires_at'),
              ])
              .where('grants.id', '=', grantId)
              .where('grants.expires_at', '>', now),
          )
          .executeTakeFirst();
        return numInsertedOrUpdatedRows === 1n ? 'stored' : 'grant ended';
      }, payload.grantId),

    /** Undefined if it has ended, with its grant or, without `offline_access`, with its session. */
    async find(token: string, sender: string): Promise<FoundArtifact | undefined> {
      const key = keyOf(token);
      const [row] = await database.query((tables) =>
        rowsByKey(tables, {
          shape: 1,
          build: () =>
            foundGrants(tables, database)
              .innerJoin('oauth_artifacts', 'oauth_artifacts.grant_id', 'grants.id')
              .select(['oauth_artifacts.payload', 'oauth_artifacts.consumed_at as consumedAt'])
              .select(isRepeated(sender).as('isRepeated'))
              .where('oauth_artifacts.id', '=', key)
              .where('oauth_artifacts.expires_at', '>', now),
          parameters: mayRepeat ? [hashOf(sender), key] : [key],
        }),
      );
      if (!row) return undefined;
      const { payload: text, consumedAt, isRepeated: isRepetition, ...grantRow } = row;
      const [payload, grant] = [unexpired(storedPayload.parse(JSON.parse(text))), toFound(grantRow)];
      const isOffline = [payload.scope, grant.scopes].every((scopes) => wordsIn(scopes).includes(OFFLINE));
      if (!grant.hasSession && !isOffline) return undefined;
      const isConsumed = consumedAt !== null && isRepetition !== 1;
      return {
        payload: { ...payload, jti: token, ...(isConsumed && { consumed: Math.floor(Number(consumedAt) / 1000) }) },
        grant,
      };
    },

    /** Resolves to false if it was used before: end its grant. */
    consume: (token: string, sender: string): Promise<boolean> =>
      database.change((tables) => use(tables, token, sender), keyOf(token)),
  };
};
