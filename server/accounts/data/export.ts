import { type Variant, variantKey, variantsIn } from '../../../entities/index.ts';
import { ownColumn } from '../../activity/index.ts';
import { columnsOf, type Database, sql } from '../../parts/database/contract.ts';
import type { FieldValues } from '../../shared/profile-fields.ts';
import { exportedDetail } from '../mail/index.ts';
import { storedFields } from '../users/index.ts';
import { type ColumnKind, storedData } from './stored-data.ts';

/** Rows per read. Bounds the memory, however many rows there are. */
const A_PAGE = 500;

/** The exported type of each kind of column. */
interface Shown {
  text: string;
  ownText: string;
  optionalText: string | null;
  mailDetail: string | null;
  number: number;
  optionalNumber: number | null;
  flag: boolean;
  time: number;
  optionalTime: number | null;
  details: Record<string, string> | null;
  fields: FieldValues | undefined;
  variants: Variant[];
}

type ShownRow<Fields extends Readonly<Record<string, ColumnKind>>> = {
  -readonly [F in keyof Fields]: Shown[Fields[F]];
};

type Stored = typeof storedData;
type RowOf<Part extends keyof Stored> = ShownRow<Stored[Part]['exported']>;
type Rows<Row> = AsyncIterable<Row[]>;

/** The parts that are shown as they are stored. */
type PlainPart = Exclude<keyof Stored, 'profile' | 'uploads'>;
type PlainParts = { [Part in PlainPart]: Rows<RowOf<Part>> };

/** All data stored about a user. Everything except the profile is read page by page while it is consumed. */
export interface AccountExport extends PlainParts {
  profile: Omit<RowOf<'profile'>, 'fields'> & { fields?: FieldValues };
  uploads: Rows<ExportedUpload>;
}

/** An upload, with the URLs of all its pictures. */
type ExportedUpload = Omit<RowOf<'uploads'>, 'variants'> & { url: string; variants: (Variant & { url: string })[] };

const plainParts = (Object.keys(storedData) as (keyof Stored)[]).filter(
  (part) => part !== 'profile' && part !== 'uploads',
);

const shown: { [Kind in ColumnKind]: (value: never) => Shown[Kind] } = {
  text: (value: string) => value,
  ownText: (value: string) => value,
  optionalText: (value: string | null) => value,
  mailDetail: (value: string | null) => value,
  number: (value: number) => Number(value),
  optionalNumber: (value: number | null) => value,
  flag: (value: number) => value === 1,
  time: (value: number) => Math.floor(value / 1000),
  optionalTime: (value: number | null) => (value === null ? null : Math.floor(value / 1000)),
  details: (value: string | null) => (value === null ? null : (JSON.parse(value) as Record<string, string>)),
  fields: (value: string | null) => (value === null ? undefined : storedFields(value)),
  variants: variantsIn,
};

/** Reads the data that `stored-data.ts` lists. `publicUrl` returns the URL of an upload. */
export const createAccountExport = ({
  database,
  publicUrl,
}: {
  database: Database;
  publicUrl(objectKey: string): string;
}) => {
  const readPage = async <Part extends keyof Stored>(part: Part, userId: string, after: string) => {
    const { table, user, key, exported } = storedData[part];
    const [userColumn, keyColumn] = [columnOf(user), columnOf(key)];
    // The list in stored-data.ts defines tables and columns, not the type.
    const rows = await database.query((tables) =>
      tables
        .selectFrom(sql<Record<string, unknown>>`${sql.table(table)}`.as('stored'))
        .select(Object.entries(exported).map(([field, kind]) => columnShown(field, kind)))
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

  async function* uploadsOf(userId: string): AsyncGenerator<ExportedUpload[]> {
    for await (const page of pagesOf('uploads', userId)) {
      yield page.map(({ variants, ...upload }) => ({
        ...upload,
        url: publicUrl(upload.objectKey),
        variants: variants.map((variant) => ({ ...variant, url: publicUrl(variantKey(upload.objectKey, variant)) })),
      }));
    }
  }

  /** Undefined for an unknown user. */
  return async (userId: string): Promise<AccountExport | undefined> => {
    const [found] = await readPage('profile', userId, '');
    if (!found) return undefined;
    const { fields, ...profile } = found;
    return {
      profile: { ...profile, ...(fields && { fields }) },
      ...(Object.fromEntries(plainParts.map((part) => [part, pagesOf(part, userId)])) as unknown as PlainParts),
      uploads: uploadsOf(userId),
    };
  };
};

function columnShown(field: string, kind: ColumnKind) {
  if (kind === 'ownText') return ownColumn(field as 'address' | 'device');
  return kind === 'mailDetail' ? exportedDetail : (columnsOf([field])[0] ?? field);
}

const columnOf = (field: string): string => columnsOf([field])[0]?.split(' as ')[0] ?? field;

const toShown = (exported: Readonly<Record<string, ColumnKind>>, row: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(exported).map(([field, kind]) => [field, shown[kind](row[field] as never)]));
