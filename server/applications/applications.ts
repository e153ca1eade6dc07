/**
 * Applications and the acts of administrators and operators on them. Each act of an administrator is rate-limited and
 * recorded in the administrator's activity.
 */
import { v7 as uuidv7 } from 'uuid';
import { z } from 'zod';
import type { Application, ApplicationKind } from '../../entities/index.ts';
import { lockStillAdministrator } from '../accounts/sessions/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import { invalidField, ServiceError } from '../errors.ts';
import { hashOf, newToken } from '../lib/random-token.ts';
import type { Limits } from '../limits/index.ts';
import {
  type AllTables,
  columnsOf,
  type Database,
  lockShared,
  nowOf,
  type ReadTables,
  sql,
} from '../parts/database/contract.ts';
import { requireSendable, type WebhookSender } from '../parts/webhook-sender/contract.ts';
import { MAX_APPLICATIONS } from '../shared/receivers.ts';
import { type PublicKey, problemOfKeys, publicKey, toStored } from './public-keys.ts';
import { problemOfRedirects } from './redirect-uris.ts';

/** Two secrets are valid for this long after a rotation. */
const ROTATION_MS = 24 * 60 * 60_000;

/** The kinds that can keep a secret (RFC 6749 section 2.1). */
export const hasSecret = (kind: ApplicationKind): boolean => kind === 'web' || kind === 'service';

const listedFields = [
  'id',
  'name',
  'kind',
  'redirectUris',
  'postLogoutRedirectUris',
  'resources',
  'scopes',
  'tokenFormat',
  'trusted',
  'logoUrl',
  'backchannelLogoutUri',
  'publicKeys',
  'disabledBy',
  'createdAt',
] as const;
export const listedColumns = columnsOf(listedFields);

/** A listed application. `createdAt` in milliseconds since 1970. */
type Listed = Pick<
  Application,
  'id' | 'name' | 'kind' | 'tokenFormat' | 'logoUrl' | 'backchannelLogoutUri' | 'disabledBy' | 'createdAt'
>;
export type ListedApplication = { [Field in keyof Listed]: Exclude<Listed[Field], undefined> } & {
  redirectUris: string[];
  /** Where the browser may go after a logout. */
  postLogoutRedirectUris: string[];
  /** Identifiers of the APIs that it may ask access tokens for (RFC 8707). */
  resources: string[];
  scopes: string[];
  trusted: boolean;
  /** Instead of a secret (RFC 7523). */
  publicKeys: PublicKey[];
};

/** What is given for a new application. Only the kind does not change. */
export type ApplicationFields = Pick<
  ListedApplication,
  | 'name'
  | 'kind'
  | 'redirectUris'
  | 'postLogoutRedirectUris'
  | 'resources'
  | 'scopes'
  | 'tokenFormat'
  | 'trusted'
  | 'logoUrl'
  | 'backchannelLogoutUri'
  | 'publicKeys'
>;
type Changes = { [Field in Exclude<keyof ApplicationFields, 'kind'>]?: ApplicationFields[Field] | undefined };

const listIn = (text: string): string[] => text.split(' ').filter(Boolean);
const listOf = (entries: readonly string[]): string => [...new Set(entries)].join(' ');

const storedKeys = z.array(publicKey);
type Lists = 'redirectUris' | 'postLogoutRedirectUris' | 'resources' | 'scopes';

/** As selected by `listedColumns`. */
export type ApplicationRow = Omit<ListedApplication, Lists | 'trusted' | 'publicKeys'> &
  Record<Lists, string> & { trusted: number; publicKeys: string | null };

export const toListed = ({ trusted, publicKeys, ...row }: ApplicationRow): ListedApplication => ({
  ...row,
  redirectUris: listIn(row.redirectUris),
  postLogoutRedirectUris: listIn(row.postLogoutRedirectUris),
  resources: listIn(row.resources),
  scopes: listIn(row.scopes),
  trusted: trusted === 1,
  publicKeys: storedKeys.parse(JSON.parse(publicKeys ?? '[]')),
});

const noApplication = () => new ServiceError('NOT_FOUND', { message: 'There is no such application' });

const noLogins = () =>
  invalidField('backchannelLogoutUri', 'not_allowed', 'Nobody logs in to applications of this kind');

/** RFC 3986. */
const noUri = () => invalidField('backchannelLogoutUri', 'malformed', 'Must be an address in ASCII');

export interface ApplicationNeeds {
  database: Database;
  limits: Pick<Limits, 'enforce'>;
  /** Inserts an event without a mail. */
  recordUnmailed: Activity['record'];
  sender: Pick<WebhookSender, 'problemOf'>;
  /** Sets where an enabled application is told of ended logins, in the caller's transaction. */
  setLogoutAddress(tables: AllTables, address: { applicationId: string; url: string | null }): Promise<void>;
  isProduction: boolean;
}

export const createApplicationActs = (needs: ApplicationNeeds) => {
  const { database, limits, recordUnmailed, sender, setLogoutAddress, isProduction } = needs;
  const { now } = database;

  const get = async (tables: ReadTables, id: string): Promise<ListedApplication> => {
    const row = await tables.selectFrom('applications').select(listedColumns).where('id', '=', id).executeTakeFirst();
    if (!row) throw noApplication();
    return toListed(row);
  };

  /** FORBIDDEN if the caller is no longer an administrator. `event` is recorded with the name. */
  const perform = async <Result>(
    caller: Caller,
    event: `application-${'added' | 'changed' | 'removed'}`,
    act: (tables: AllTables) => Promise<Result & { name: string }>,
  ): Promise<Result & { name: string }> => {
    const { actor, actorId } = caller;
    if (actor === 'administrator') await limits.enforce('administration', actorId);
    return database.transaction(async (em, tables) => {
      await lockStillAdministrator(em, caller);
      if (event === 'application-added') await lockShared(em, 'applications');
      const done = await act(tables);
      if (actorId) await recordUnmailed(tables, actorId, { kind: event, details: { name: done.name } }, caller);
      return done;
    }, actorId);
  };

  /** `former`: an application that has keys keeps at least one. */
  const check = (fields: Changes, kind: ApplicationKind, former?: ListedApplication): void => {
    for (const field of ['redirectUris', 'postLogoutRedirectUris'] as const) {
      const { [field]: uris } = fields;
      const isRequired = field === 'redirectUris';
      const problem = uris && problemOfRedirects({ uris, kind, isProduction, isRequired });
      if (problem) throw new ServiceError('VALIDATION_FAILED', { details: { [field]: problem } });
    }
    const { publicKeys: keys, backchannelLogoutUri } = fields;
    if (typeof backchannelLogoutUri === 'string') {
      if (kind === 'service') throw noLogins();
      if (!/^[!-~]*$/.test(backchannelLogoutUri)) throw noUri();
      requireSendable(sender, 'backchannelLogoutUri', backchannelLogoutUri);
    }
    const isRequired = former !== undefined && former.publicKeys.length > 0;
    const problem = keys && problemOfKeys({ keys, isAllowed: hasSecret(kind), isRequired });
    if (problem) throw new ServiceError('VALIDATION_FAILED', { details: { publicKeys: problem } });
  };

  const columnsFrom = ({
    name,
    redirectUris,
    postLogoutRedirectUris,
    resources,
    scopes,
    tokenFormat,
    trusted,
    logoUrl,
    backchannelLogoutUri,
    publicKeys = [],
  }: Changes) => ({
    ...(name !== undefined && { name }),
    ...(redirectUris && { redirect_uris: listOf(redirectUris) }),
    ...(postLogoutRedirectUris && { post_logout_redirect_uris: listOf(postLogoutRedirectUris) }),
    ...(resources && { resources: listOf(resources) }),
    ...(scopes && { scopes: listOf(scopes) }),
    ...(tokenFormat !== undefined && { token_format: tokenFormat }),
    ...(trusted !== undefined && { trusted: Number(trusted) }),
    ...(logoUrl !== undefined && { logo_url: logoUrl }),
    ...(backchannelLogoutUri !== undefined && { backchannel_logout_uri: backchannelLogoutUri }),
    // From now on no secret is accepted.
    ...(publicKeys.length > 0 && {
      public_keys: JSON.stringify(publicKeys.map(toStored)),
      secret_hash: null,
      former_hash: null,
      former_until: null,
    }),
  });

  /** The application as stored, which is told of ended logins while it is enabled. */
  const withLogoutAddress = async (tables: AllTables, id: string): Promise<ListedApplication> => {
    const application = await get(tables, id);
    const { disabledBy, backchannelLogoutUri } = application;
    await setLogoutAddress(tables, { applicationId: id, url: disabledBy === null ? backchannelLogoutUri : null });
    return application;
  };

  /** The application ends with the role of who changed it last, and of who created or enabled it. */
  const changedBy = ({ actorId }: Caller) => ({ changed_by: actorId ?? null });
  const enabledBy = (caller: Caller) => ({
    ...changedBy(caller),
    disabled_by: null,
    administrator_id: caller.actorId ?? null,
  });

  return {
    /** All of them, oldest first. */
    async list(): Promise<ListedApplication[]> {
      const rows = await database.query((tables) =>
        tables.selectFrom('applications').select(listedColumns).orderBy('id').execute(),
      );
      return rows.map(toListed);
    },

    /** NOT_FOUND for an unknown id. */
    get: (id: string): Promise<ListedApplication> => database.query((tables) => get(tables, id)),

    /** Resolves to the application and its secret, if its kind has one and it has no keys; no other call returns it. */
    async create(
      fields: ApplicationFields,
      caller: Caller,
    ): Promise<{ application: ListedApplication; secret: string | undefined }> {
      check(fields, fields.kind);
      const id = uuidv7();
      const secret = hasSecret(fields.kind) && fields.publicKeys.length === 0 ? newToken() : undefined;
      const application = await perform(caller, 'application-added', async (tables) => {
        const { count } = await tables
          .selectFrom('applications')
          .select(({ fn }) => fn.countAll<number>().as('count'))
          .executeTakeFirstOrThrow();
        if (Number(count) >= MAX_APPLICATIONS) throw new ServiceError('TOO_MANY_APPLICATIONS');
        await tables
          .insertInto('applications')
          .values({
            secret_hash: secret === undefined ? null : hashOf(secret),
            ...columnsFrom(fields),
            ...enabledBy(caller),
            id,
            kind: fields.kind,
            created_at: now,
          } as never)
          .execute();
        return withLogoutAddress(tables, id);
      });
      return { application, secret };
    },

    /** Changes the given fields. A disabled application logs nobody in, and its tokens are void. */
    update: (
      id: string,
      { enabled, ...fields }: Changes & { enabled?: boolean | undefined },
      caller: Caller,
    ): Promise<ListedApplication> =>
      perform(caller, 'application-changed', async (tables) => {
        const former = await get(tables, id);
        check(fields, former.kind, former);
        const isChanged = enabled !== undefined && enabled === (former.disabledBy !== null);
        const state = isChanged ? (enabled ? enabledBy(caller) : { disabled_by: 'administrator' as const }) : {};
        const values = { ...columnsFrom(fields), ...state };
        if (Object.keys(values).length > 0)
          await tables
            .updateTable('applications')
            .set({ ...values, ...changedBy(caller) })
            .where('id', '=', id)
            .execute();
        return withLogoutAddress(tables, id);
      }),

    async remove(id: string, caller: Caller): Promise<void> {
      await perform(caller, 'application-removed', async (tables) => {
        const application = await get(tables, id);
        await tables.deleteFrom('applications').where('id', '=', id).execute();
        await setLogoutAddress(tables, { applicationId: id, url: null });
        return application;
      });
    },

    /** A new secret. The former one is accepted too for 24 hours. NOT_FOUND if it has none. */
    async rotateSecret(id: string, caller: Caller): Promise<{ secret: string; formerUntil: number }> {
      const secret = newToken();
      const { formerUntil } = await perform(caller, 'application-changed', async (tables) => {
        const application = await get(tables, id);
        if (!hasSecret(application.kind))
          throw new ServiceError('NOT_FOUND', { message: 'Applications of this kind have no secret' });
        if (application.publicKeys.length > 0)
          throw new ServiceError('NOT_FOUND', { message: 'This application has keys instead of a secret' });
        const formerUntil = (await nowOf(database, tables)) + ROTATION_MS;
        const rotated = tables.updateTable('applications').where('id', '=', id);
        await rotated.set({ former_hash: sql`secret_hash`, former_until: formerUntil }).execute();
        await rotated.set({ secret_hash: hashOf(secret), ...changedBy(caller) }).execute();
        return { ...application, formerUntil };
      });
      return { secret, formerUntil };
    },
  };
};
