import { v7 as uuidv7 } from 'uuid';
import type { Consent } from '../../../entities/index.ts';
import { invalidField } from '../../errors.ts';
import { type AllTables, columnsOf, type Database, sql, type WriteTables } from '../../parts/database/contract.ts';

/** Maximum versions in the list of a user. */
const MAX_LISTED = 100;

/** The public fields of a consent. `createdAt` in milliseconds since 1970. */
const listedFields = ['version', 'createdAt'] as const;
export type ListedConsent = Pick<Consent, (typeof listedFields)[number]>;

const changed = (field: string) => invalidField(field, 'terms_changed', 'These are not the current terms');

/** The accepted versions of the terms, by user. Without a `current` version nobody is asked to accept anything. */
export const createConsents = ({ database, current }: { database: Database; current: string | undefined }) => {
  const listOf = (tables: Pick<AllTables, 'selectFrom'>, userId: string): Promise<ListedConsent[]> =>
    tables
      .selectFrom('consents')
      .select(columnsOf(listedFields))
      .where('user_id', '=', userId)
      .orderBy('created_at', 'desc')
      .orderBy('id', 'desc')
      .limit(MAX_LISTED)
      .execute();

  /** Stores that the user accepts the current terms, in the transaction that makes the account. */
  const record = async (tables: WriteTables, userId: string): Promise<void> => {
    if (current === undefined) return;
    await tables
      .insertInto('consents')
      .values({ id: uuidv7(), user_id: userId, version: current, created_at: sql<number>`${database.now}` })
      .execute();
  };

  return {
    record,

    /** VALIDATION_FAILED unless the new user accepts the current terms; also if the user was shown another version. */
    requireAccepted({
      acceptTerms,
      termsVersion = current,
    }: {
      acceptTerms: boolean;
      termsVersion?: string | undefined;
    }): void {
      if (current === undefined) return;
      if (!acceptTerms) throw invalidField('acceptTerms', 'terms_not_accepted', 'The terms must be accepted');
      if (termsVersion !== current) throw changed('acceptTerms');
    },

    /** Removes consents that another person may have given since a time (database clock, milliseconds since 1970). */
    async removeSince(tables: WriteTables, userId: string, since: number): Promise<void> {
      await tables.deleteFrom('consents').where('user_id', '=', userId).where('created_at', '>=', since).execute();
    },

    /** Stores that the user accepts the current terms. VALIDATION_FAILED if `version` is no longer the current one. */
    async accept(tables: AllTables, userId: string, version: string): Promise<void> {
      if (version !== current) throw changed('version');
      const accepted = await listOf(tables, userId);
      if (!accepted.some((consent) => consent.version === version)) await record(tables, userId);
    },

    /** The versions that the user has accepted, newest first, and the current one. */
    list: async (userId: string) => ({
      current,
      consents: await database.query((tables) => listOf(tables, userId)),
    }),
  };
};

export type Consents = ReturnType<typeof createConsents>;
