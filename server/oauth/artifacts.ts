/**
 * Authorization codes and refresh tokens: rows that belong to a grant. A conditional update decides who uses one, so that
 * it is used once on all instances; a second use ends the grant (RFC 9700 sections 2.1.1 and 4.14.2).
 */
import type { AdapterPayload } from 'oidc-provider';
import { z } from 'zod';
import { hashOf } from '../lib/random-token.ts';
import { type Database, sql } from '../parts/database/contract.ts';
import { OFFLINE, validGrants, wordsIn } from './grants.ts';

/** The answer to a refresh may be lost: the same sender may repeat it within this time. */
const REPEATED_MS = 10_000;

export type ArtifactKind = 'AuthorizationCode' | 'RefreshToken';

const isPayload = (value: unknown) => typeof value === 'object' && value !== null;
const storedPayload = z.custom<AdapterPayload>(isPayload);

export const createArtifacts = (database: Database, kind: ArtifactKind) => {
  const { now } = database;
  const keyOf = (token: string) => hashOf(`${kind}:${token}`);
  /** 1 for a refresh token that this sender has used just now. */
  const isRepeated = (sender: string) =>
    kind === 'RefreshToken'
      ? sql<number>`coalesce(consumed_by = ${hashOf(sender)} and consumed_at > ${now} - ${sql.lit(REPEATED_MS)}, 0)`
      : sql<number>`0`;

  return {
    /** Resolves to false if the grant has ended. */
    async insert(token: string, { jti: _, ...payload }: AdapterPayload, lifeMs: number): Promise<boolean> {
      const { numInsertedOrUpdatedRows } = await database.write((tables) =>
        tables
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
              .where('grants.id', '=', payload.grantId ?? ''),
          )
          .executeTakeFirst(),
      );
      return numInsertedOrUpdatedRows === 1n;
    },

    /** Undefined if it has ended, with its grant or, without `offline_access`, with its session. */
    async find(token: string, sender: string): Promise<AdapterPayload | undefined> {
      const row = await database.query((tables) =>
        validGrants(tables, database)
          .innerJoin('oauth_artifacts', 'oauth_artifacts.grant_id', 'grants.id')
          .select(['oauth_artifacts.payload', 'oauth_artifacts.consumed_at as consumedAt'])
          .select([sql<number>`sessions.id is not null`.as('hasSession'), isRepeated(sender).as('isRepeated')])
          .where('oauth_artifacts.id', '=', keyOf(token))
          .where('oauth_artifacts.expires_at', '>', now)
          .executeTakeFirst(),
      );
      if (!row) return undefined;
      const payload = storedPayload.parse(JSON.parse(row.payload));
      if (row.hasSession !== 1 && !wordsIn(payload.scope).includes(OFFLINE)) return undefined;
      const isConsumed = row.consumedAt !== null && row.isRepeated !== 1;
      return { ...payload, jti: token, ...(isConsumed && { consumed: Math.floor(Number(row.consumedAt) / 1000) }) };
    },

    /** Resolves to undefined if this call uses it, and to the id of its grant if another one has: end that grant. */
    async consume(token: string, sender: string): Promise<{ grantId: string | undefined } | undefined> {
      const used = await database.write((tables) =>
        tables
          .updateTable('oauth_artifacts')
          .set({ consumed_at: now, consumed_by: hashOf(sender) })
          .where('id', '=', keyOf(token))
          .where('consumed_at', 'is', null)
          .executeTakeFirst(),
      );
      if (used.numUpdatedRows === 1n) return undefined;
      const row = await database.query((tables) =>
        tables
          .selectFrom('oauth_artifacts')
          .select(['grant_id as grantId', isRepeated(sender).as('isRepeated')])
          .where('id', '=', keyOf(token))
          .executeTakeFirst(),
      );
      return row?.isRepeated === 1 ? undefined : { grantId: row?.grantId };
    },

    async remove(token: string): Promise<void> {
      await database.write((tables) => tables.deleteFrom('oauth_artifacts').where('id', '=', keyOf(token)).execute());
    },
  };
};

export type Artifacts = ReturnType<typeof createArtifacts>;
