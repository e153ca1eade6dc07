import { v7 as uuidv7 } from 'uuid';
import type { Consent } from '../../entities/index.ts';
import { ServiceError } from '../errors.ts';
import { type AllTables, columnsOf, type Database, sql, type WriteTables } from '../parts/database/contract.ts';
import type { Session } from './sessions.ts';
import { lockOwner } from './sessions-of-user.ts';

/** The most versions that a user is shown. */
const MOST_LISTED = 100;

/** What users see of a consent. `createdAt` in milliseconds since 1970. */
const listedFields = ['version', 'createdAt'] as const;
export type ListedConsent = Pick<Consent, (typeof listedFields)[number]>;

const refusal = (rule: string, message: string, field: string) =>
  new ServiceError('VALIDATION_FAILED', { details: { [field]: { message, rule } } });

const changed = (field: string) => refusal('terms_changed', 'These are not the current terms', field);

/** Which version of the terms users have accepted. `current` is undefined where there are none: then nothing is asked for. */
export const createConsents = ({ database, current }: { database: Database; current: string | undefined }) => {
  const listOf = (tables: Pick<AllTables, 'selectFrom'>, userId: string): Promise<ListedConsent[]> =>
    tables
      .selectFrom('consents')
      .select(columnsOf(listedFields))
      .where('user_id', '=', userId)
      .orderBy('created_at', 'desc')
      .orderBy('id', 'desc')
      .limit(MOST_LISTED)
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

    /** VALIDATION_FAILED unless a user who registers has accepted the terms that there are, and was shown no other version. */
    requireAccepted({
      acceptTerms,
      termsVersion = current,
    }: {
      acceptTerms: boolean;
      termsVersion?: string | undefined;
    }): void {
      if (current === undefined) return;
      if (!acceptTerms) throw refusal('terms_not_accepted', 'The terms must be accepted', 'acceptTerms');
      if (termsVersion !== current) throw changed('acceptTerms');
    },

    /** Removes what another person may have accepted since a time by the database's clock, in milliseconds since 1970. */
    async removeSince(tables: WriteTables, userId: string, since: number): Promise<void> {
      await tables.deleteFrom('consents').where('user_id', '=', userId).where('created_at', '>=', since).execute();
    },

    /** The versions that the user has accepted, newest first, and the current one. */
    listConsents: async (userId: string) => ({
      current,
      consents: await database.query((tables) => listOf(tables, userId)),
    }),

    /** Stores that the user accepts the current terms. VALIDATION_FAILED where `version` is another: they have changed since. */
    acceptTerms: (session: Session, version: string): Promise<void> =>
      database.transaction(async (em, tables) => {
        const { id } = await lockOwner(em, tables, session);
        if (version !== current) throw changed('version');
        const accepted = await listOf(tables, id);
        if (!accepted.some((consent) => consent.version === version)) await record(tables, id);
      }, session.user.id),
  };
};

export type Consents = ReturnType<typeof createConsents>;
