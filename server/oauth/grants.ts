/**
 * What users allow applications. A grant is compared with its user, application and session whenever it is read, so
 * nothing that ends sessions can forget it: a raised epoch, a block, a deletion or a disabled application voids it at
 * its commit.
 */
import { v7 as uuidv7 } from 'uuid';
import type { Grant } from '../../entities/index.ts';
import type { Accounts } from '../accounts/index.ts';
import { changeAsOwner } from '../accounts/sessions/index.ts';
import type { Account, LockedUser } from '../accounts/users/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import type { ListedApplication } from '../applications/index.ts';
import {
  type AllTables,
  columnsOf,
  type Database,
  prepared,
  type ReadTables,
  sql,
} from '../parts/database/contract.ts';
import { deleteGrants } from '../workers/sweep.ts';
import { allowedScopes, OFFLINE } from './scopes.ts';

/** A grant ends this long after the last authorization by the user; refreshes do not extend it. */
const LIFE_MS = 365 * 24 * 60 * 60_000;
/** The maximum number of grants of a user to one application: each session of the user has its own. */
const MAX_OF_APPLICATION = 50;

const grantFields = ['id', 'userId', 'applicationId', 'scopes', 'resources', 'createdAt', 'expiresAt'] as const;

/** A use is recorded at most once in this time. */
const RECORDED_MS = 60_000;

/**
 * A valid grant. `scopes`: those that the application still has. `hasSession`: the session that made it is open. `isUseDue`: no use was recorded lately. Times in
 * milliseconds since 1970.
 */
export type FoundGrant = Pick<Grant, (typeof grantFields)[number]> & { hasSession: boolean; isUseDue: boolean };

/** What an application asks for, and who is asked. */
export interface Request {
  user: Account;
  sessionId: string;
  application: Pick<ListedApplication, 'id' | 'name' | 'trusted' | 'scopes' | 'resources'>;
  scopes: readonly string[];
  resources: readonly string[];
  /** A device asks. Each one is mailed to the user, since a stranger may have sent its code. */
  isDevice?: boolean;
}

export const wordsIn = (text: string | undefined): string[] => text?.split(' ').filter(Boolean) ?? [];
const covers = (granted: string, asked: readonly string[]): boolean => {
  const has = new Set(wordsIn(granted));
  return asked.every((word) => has.has(word));
};
const union = (granted: string, asked: readonly string[]): string =>
  [...new Set([...wordsIn(granted), ...asked])].join(' ');
/** Those of a list that are allowed. */
export const among = (words: string | undefined, allowed: readonly string[]): string =>
  wordsIn(words)
    .filter((word) => allowed.includes(word))
    .join(' ');

interface Parts {
  /** APP_URL, which every application may ask for as a resource. */
  issuer: string;
  database: Database;
  activity: Activity;
  mail: Accounts['mail'];
}

/** Unexpired grants, each with its session if that is open. */
const unexpiredGrants = (tables: ReadTables, { now }: Pick<Database, 'now'>) =>
  tables
    .selectFrom('grants')
    .leftJoin('sessions', (on) =>
      on
        .onRef('sessions.id', '=', 'grants.session_id')
        .onRef('sessions.epoch', '=', 'grants.epoch')
        .on('sessions.expires_at', '>', now),
    )
    .where('grants.expires_at', '>', now);

/** Unexpired grants of the current epoch of a user who may log in, to an enabled application. */
export const validGrants = (tables: ReadTables, database: Pick<Database, 'now'>) =>
  unexpiredGrants(tables, database)
    .innerJoin('users', 'users.id', 'grants.user_id')
    .innerJoin('applications', 'applications.id', 'grants.application_id')
    .whereRef('users.session_epoch', '=', 'grants.epoch')
    .where('users.deleted_at', 'is', null)
    .where('users.blocked_at', 'is', null)
    .where('applications.disabled_by', 'is', null);

export type GrantRow = Omit<FoundGrant, 'hasSession' | 'isUseDue'> & {
  hasSession: number;
  isUseDue: number;
  applicationScopes: string;
};

const grantColumns = columnsOf(grantFields).map((column) => `grants.${column}` as const);

/** Selects a `GrantRow` of each valid grant. */
export const foundGrants = (tables: ReadTables, { now }: Pick<Database, 'now'>) =>
  validGrants(tables, { now })
    .select(grantColumns)
    .select([
      'applications.scopes as applicationScopes',
      sql<number>`sessions.id is not null`.as('hasSession'),
      sql<number>`grants.last_used_at <= ${now} - ${sql.lit(RECORDED_MS)}`.as('isUseDue'),
    ]);

/** The scopes of a grant that its application still has. */
export const currentScopes = ({ scopes, applicationScopes }: Pick<GrantRow, 'scopes' | 'applicationScopes'>): string =>
  among(scopes, allowedScopes(wordsIn(applicationScopes)));

export const toFound = ({ hasSession, isUseDue, applicationScopes, ...grant }: GrantRow): FoundGrant => ({
  ...grant,
  scopes: currentScopes({ ...grant, applicationScopes }),
  hasSession: hasSession === 1,
  isUseDue: isUseDue === 1,
});

/**
 * Ends the valid grants that the caller selects; their applications count as told. The rows leave their sessions, so
 * the next consent makes a new grant. Housekeeping deletes them: a month of used tokens may exceed one transaction.
 */
export const endGrants = (tables: AllTables, { now }: Pick<Database, 'now'>) =>
  tables
    .updateTable('grants')
    .set({ session_id: sql<string>`id`, logout_told_at: now, expires_at: 0 })
    .where('expires_at', '>', now);

/** Deletes the grants to deleted applications. Looks up each application once: there are few, and very many grants. */
export async function sweepGrants(database: Database): Promise<void> {
  for (let after = ''; ; ) {
    const next = await database.query((tables) =>
      tables
        .selectFrom('grants')
        .leftJoin('applications', 'applications.id', 'grants.application_id')
        .select(['grants.application_id as id', 'applications.id as existing'])
        .where('grants.application_id', '>', after)
        .orderBy('grants.application_id')
        .limit(1)
        .executeTakeFirst(),
    );
    if (!next) return;
    if (next.existing === null) await deleteGrants(database, sql`application_id = ${next.id}`);
    after = next.id;
  }
}

/** Inserts the event that grants ended. */
export const recordEnd = (
  activity: Pick<Activity, 'record'>,
  tables: AllTables,
  { userId, name, ...details }: { userId: string; name: string; applicationId: string; grant?: string },
  caller: Caller,
): Promise<void> =>
  activity.record(tables, userId, { kind: 'grant-revoked', details: { application: name, ...details } }, caller);

export const createGrants = ({ issuer, database, activity, mail }: Parts) => {
  const { now } = database;
  const rowsById = prepared<GrantRow>();

  const ofUser = (tables: ReadTables, userId: string, applicationId: string) =>
    validGrants(tables, database)
      .where('grants.user_id', '=', userId)
      .where('grants.application_id', '=', applicationId);

  /**
   * Ends grants of a user to an application beyond the maximum: first the oldest that only remember a consent, then the
   * oldest in use.
   */
  const makeRoom = async (tables: AllTables, { user, application }: Request, caller: Caller): Promise<void> => {
    const of = { userId: user.id, applicationId: application.id, name: application.name };
    const others = await unexpiredGrants(tables, database)
      .select(['grants.id', 'grants.epoch', 'grants.scopes', 'sessions.id as session'])
      .where('grants.user_id', '=', of.userId)
      .where('grants.application_id', '=', of.applicationId)
      .orderBy('grants.id', 'desc')
      .limit(2 * MAX_OF_APPLICATION)
      .execute();
    const isOffline = allowedScopes(application.scopes).includes(OFFLINE);
    const isInUse = ({ epoch, session, scopes }: (typeof others)[number]) =>
      epoch === user.sessionEpoch && (session !== null || (isOffline && wordsIn(scopes).includes(OFFLINE)));
    const surplus = others.toSorted((a, b) => Number(isInUse(b)) - Number(isInUse(a))).slice(MAX_OF_APPLICATION - 1);
    const ids = surplus.map(({ id }) => id);
    if (ids.length > 0) await endGrants(tables, database).where('id', 'in', ids).execute();
    for (const { id: grant } of surplus.filter(isInUse)) await recordEnd(activity, tables, { ...of, grant }, caller);
  };

  /** Whether a grant of the user, in any session, has all of it. */
  const isAllowed = async (
    tables: ReadTables,
    { user, application, scopes, resources }: Omit<Request, 'sessionId'>,
  ): Promise<boolean> => {
    const rows = await ofUser(tables, user.id, application.id).select(['grants.scopes', 'grants.resources']).execute();
    return rows.some((row) => covers(row.scopes, scopes) && covers(row.resources, resources));
  };

  /** Records the access in the user's activity, and mails it unless the application is trusted. */
  const tell = async (
    tables: AllTables,
    user: LockedUser,
    { application, isDevice }: Request,
    caller: Caller,
  ): Promise<void> => {
    const { id: applicationId, name, trusted } = application;
    const kind = 'grant-created';
    const details = { application: name, applicationId };
    if (trusted && !isDevice)
      await activity.record(tables, user.id, { kind, details: { ...details, trusted: 'true' } }, caller);
    else await mail.record(tables, user, { kind, details }, caller);
  };

  return {
    /** Undefined if it has ended. It also ends with its session, unless it has `offline_access`. */
    async find(id: string): Promise<FoundGrant | undefined> {
      const [row] = await database.query((tables) =>
        rowsById(tables, {
          shape: 1,
          build: () => foundGrants(tables, database).where('grants.id', '=', id),
          parameters: [id],
        }),
      );
      if (!row) return undefined;
      const grant = toFound(row);
      return grant.hasSession || wordsIn(grant.scopes).includes(OFFLINE) ? grant : undefined;
    },

    /** Whether the user has allowed all of it before, in any session. */
    hasConsent: (request: Omit<Request, 'sessionId'>): Promise<boolean> =>
      database.query((tables) => isAllowed(tables, request)),

    /**
     * Makes the grant of the session to the application, or adds to it what is asked for now. Resolves to its id.
     * UNAUTHENTICATED if the session has ended. RATE_LIMITED beyond the limit of acts that mail.
     */
    async save(request: Request, caller: Caller): Promise<string> {
      const { user, sessionId, application, scopes, resources, isDevice = false } = request;
      // Only what the application still has: each column has room for one list.
      const granted = (former = { scopes: '', resources: '' }) => ({
        scopes: among(union(former.scopes, scopes), allowedScopes(application.scopes)),
        resources: among(union(former.resources, resources), [issuer, ...application.resources]),
      });
      const session = { id: sessionId, user };
      return changeAsOwner({ database, outbox: mail.outbox }, session, async (_em, tables, owner) => {
        const isNews = isDevice || !(await isAllowed(tables, request));
        const current = { epoch: user.sessionEpoch, last_used_at: now, expires_at: sql<number>`${now} + ${LIFE_MS}` };
        const former = await tables
          .selectFrom('grants')
          .select(['id', 'scopes', 'resources'])
          .where('session_id', '=', sessionId)
          .where('application_id', '=', application.id)
          .executeTakeFirst();
        if (former) {
          const { numUpdatedRows } = await tables
            .updateTable('grants')
            .set({ ...granted(former), ...current, logout_told_at: null })
            .where('id', '=', former.id)
            .where('session_id', '=', sessionId)
            .executeTakeFirst();
          // If the grant has ended meanwhile, another one is made.
          if (numUpdatedRows === 1n) {
            if (isNews) await tell(tables, owner, request, caller);
            return former.id;
          }
        }
        await makeRoom(tables, request, caller);
        const id = uuidv7();
        await tables
          .insertInto('grants')
          .values({
            ...granted(),
            ...current,
            id,
            user_id: owner.id,
            application_id: application.id,
            session_id: sessionId,
            created_at: now,
          } as never)
          .execute();
        if (isNews) await tell(tables, owner, request, caller);
        return id;
      });
    },

    /** Ends a grant and all its tokens: a code or refresh token was used twice, or revoked (RFC 7009). */
    end: (id: string, caller: Caller): Promise<void> =>
      database.change(async (tables) => {
        const row = await tables
          .selectFrom('grants')
          .innerJoin('applications', 'applications.id', 'grants.application_id')
          .select(['grants.user_id as userId', 'applications.name', 'applications.id as applicationId'])
          .where('grants.id', '=', id)
          .executeTakeFirst();
        const { numUpdatedRows } = await endGrants(tables, database).where('id', '=', id).executeTakeFirst();
        if (row && numUpdatedRows === 1n) await recordEnd(activity, tables, { ...row, grant: id }, caller);
      }, id),
  };
};

export type Grants = ReturnType<typeof createGrants>;
