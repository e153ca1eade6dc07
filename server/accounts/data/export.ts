import type { Kysely } from 'kysely';
import { columnsOf, type Database } from '../parts/database/contract.ts';
import { type ColumnKind, storedData } from './stored-data.ts';

/** Rows of one read: what is in memory at a time, however many there are. */
const A_PAGE = 500;

/** What a column of each kind becomes. */
interface Shown {
  text: string;
  optionalText: string | null;
  number: number;
  flag: boolean;
  time: number;
  optionalTime: number | null;
  details: Record<string, string> | null;
}

type ShownRow<Fields extends Readonly<Record<string, ColumnKind>>> = {
  -readonly [F in keyof Fields]: Shown[Fields[F]];
};

type Stored = typeof storedData;
type RowOf<Part extends keyof Stored> = ShownRow<Stored[Part]['exported']>;
type Rows<Row> = AsyncIterable<Row[]>;

/** Everything that is stored about a user. All but the profile is read, page by page, while it is consumed. */
export interface AccountExport {
  profile: RowOf<'profile'>;
  identities: Rows<RowOf<'identities'>>;
  passkeys: Rows<RowOf<'passkeys'>>;
  authenticatorApp: Rows<RowOf<'authenticatorApp'>>;
  recoveryCodes: Rows<RowOf<'recoveryCodes'>>;
  emailChanges: Rows<RowOf<'emailChanges'>>;
  invitations: Rows<RowOf<'invitations'>>;
  consents: Rows<RowOf<'consents'>>;
  sessions: Rows<RowOf<'sessions'>>;
  activity: Rows<RowOf<'activity'>>;
  mails: Rows<RowOf<'mails'>>;
  uploads: Rows<RowOf<'uploads'> & { url: string }>;
}

const shown: { [Kind in ColumnKind]: (value: never) => Shown[Kind] } = {
  text: (value: string) => value,
  optionalText: (value: string | null) => value,
  number: (value: number) => Number(value),
  flag: (value: number) => value === 1,
  time: (value: number) => Math.floor(value / 1000),
  optionalTime: (value: number | null) => (value === null ? null : Math.floor(value / 1000)),
  details: (value: string | null) => (value === null ? null : (JSON.parse(value) as Record<string, string>)),
};

/** Any table and column: the list of what is stored, not the type, says which there are. */
type AnyTables = Pick<Kysely<Record<string, Record<string, unknown>>>, 'selectFrom'>;

/** Reads what is stored about users, as `stored-data.ts` lists it. `publicUrl` is the address of an upload. */
export const createAccountExport = (database: Database, { publicUrl }: { publicUrl(objectKey: string): string }) => {
  const readPage = async <Part extends keyof Stored>(part: Part, userId: string, after: string) => {
    const { table, user, key, exported } = storedData[part];
    const [userColumn, keyColumn] = [columnOf(user), columnOf(key)];
    const rows = await database.query((tables) =>
      (tables as unknown as AnyTables)
        .selectFrom(table)
        .select(columnsOf(Object.keys(exported)))
        .where(userColumn, '=', userId)
        .where(keyColumn, '>', after)
        .orderBy(keyColumn)
        .limit(A_PAGE)
        .execute(),
    );
    return rows.map((row) => toShown(exported, row)) as RowOf<Part>[];
  };

  async function* pagesOf<Part extends keyof Stored>(part: Part, userId: string): AsyncGenerator<RowOf<Part>[]> {
    const key = storedData[part].key as keyof RowOf<Part>;
    for (let after = ''; ; ) {
      const page = await readPage(part, userId, after);
      if (page.length > 0) yield page;
      if (page.length < A_PAGE) return;
      after = String(page.at(-1)?.[key]);
    }
  }

  async function* uploadsOf(userId: string): AsyncGenerator<(RowOf<'uploads'> & { url: string })[]> {
    for await (const page of pagesOf('uploads', userId)) {
      yield page.map((upload) => ({ ...upload, url: publicUrl(upload.objectKey) }));
    }
  }

  /** Undefined where there is no such user. */
  return async (userId: string): Promise<AccountExport | undefined> => {
    const [profile] = await readPage('profile', userId, '');
    return (
      profile && {
        profile,
        identities: pagesOf('identities', userId),
        passkeys: pagesOf('passkeys', userId),
        authenticatorApp: pagesOf('authenticatorApp', userId),
        recoveryCodes: pagesOf('recoveryCodes', userId),
        emailChanges: pagesOf('emailChanges', userId),
        invitations: pagesOf('invitations', userId),
        consents: pagesOf('consents', userId),
        sessions: pagesOf('sessions', userId),
        activity: pagesOf('activity', userId),
        mails: pagesOf('mails', userId),
        uploads: uploadsOf(userId),
      }
    );
  };
};

const columnOf = (field: string): string => columnsOf([field])[0]?.split(' as ')[0] ?? field;

const toShown = (exported: Readonly<Record<string, ColumnKind>>, row: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(exported).map(([field, kind]) => [field, shown[kind](row[field] as never)]));
