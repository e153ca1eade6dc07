/**
 * Users are found by the start of their name, for administrators of its later words too, and with `byAddress` of their
 * address. Each query reads an index range
 * that begins where the previous page ended. So a page costs the same, whatever `q` is and however many users match. A
 * page can be short although more follow.
 */
import type { SelectQueryBuilder } from 'kysely';
import { z } from 'zod';
import { afterPrefix, laterWords, searchKey } from '../../../entities/index.ts';
import type { Database, ReadTables, Tables } from '../../parts/database/contract.ts';
import { type CustomFields, createCustomFields } from './custom-fields.ts';
import { existing, listedColumns, type UserPage } from './users.ts';

/** Maximum addresses that a page scans for users not already found by name. */
const ADDRESSES_A_PAGE = 400;

const ascii = z.string().regex(/^[!-~]*$/);

/**
 * The end of a page: among the users found by name, ordered by (name key, id), among those found by a later word, ordered
 * by (word, id), or among those found only by address, which come last. Ids and addresses are ASCII columns.
 */
const positionSchema = z.union([
  z.strictObject({ name: z.string().refine((text) => text.isWellFormed()), id: ascii }),
  z.strictObject({ word: z.string().refine((text) => text.isWellFormed()), id: ascii }),
  z.strictObject({ email: ascii }),
]);
type Position = z.output<typeof positionSchema>;

const beginning: Position = { name: '', id: '' };

const encode = (position: Position): string => Buffer.from(JSON.stringify(position)).toString('base64url');

function decode(cursor: string, key: string): Position | undefined {
  try {
    const position = positionSchema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
    const text = 'name' in position ? position.name : 'word' in position ? position.word : position.email;
    const isOurs = encode(position) === cursor && (text.startsWith(key) || text === '');
    return isOurs ? position : undefined;
  } catch {
    return undefined;
  }
}

/** Whether `q` has a searchable character. */
export const isSearchable = (q: string): boolean => searchKey(q) !== '';

/** Whether this is the cursor of a page of `q`. */
export const isSearchCursor = (cursor: string, q: string): boolean => decode(cursor, searchKey(q)) !== undefined;

/** The columns of a user that a search needs. */
interface Found {
  id: string;
  email: string;
  searchName: string | null;
}

interface SearchRequest {
  q: string;
  cursor?: string | undefined;
  limit: number;
  /** Whether users are also found by their address. */
  byAddress?: boolean;
}

/** Whether the name starts with the key. */
const startsWith = (key: string, { searchName }: Found): boolean => searchName?.startsWith(key) ?? false;

/** The later word by which a user is found; undefined for none. The rows of a user's other words repeat the user. */
const wordOf = (key: string, { searchName }: Found): string | undefined =>
  laterWords(searchName ?? '').find((word) => word.startsWith(key));

/** Searches for names and addresses that start with `q`, compared by `searchKey`. Users found by name come first. */
export const createSearch =
  <Row extends Found>(
    read: Database['query'],
    rowsOf: (tables: ReadTables) => SelectQueryBuilder<Tables, 'users', Row>,
    { byWord: isByWord = false }: { byWord?: boolean } = {},
  ) =>
  ({ q, cursor, limit, byAddress: isByAddress = true }: SearchRequest): Promise<UserPage<Row>> =>
    read(async (tables) => {
      const key = searchKey(q);
      const after = (cursor === undefined ? undefined : decode(cursor, key)) ?? beginning;

      const byName = 'name' in after ? await namesAfter(rowsOf(tables), key, after, limit + 1) : [];
      if (byName.length > limit) {
        const last = byName[limit - 1];
        return pageOf(byName.slice(0, limit), last && { name: last.searchName ?? '', id: last.id });
      }

      const roomForWords = limit - byName.length;
      const afterWord = 'word' in after ? after : { word: '', id: '' };
      const words =
        isByWord && !('email' in after) ? await wordsAfter(rowsOf(tables), key, afterWord, roomForWords + 1) : [];
      const isOnce = (row: Row & { word: string }) => !startsWith(key, row) && wordOf(key, row) === row.word;
      const byWord = words.slice(0, roomForWords).filter(isOnce);
      if (words.length > roomForWords) {
        const last = words[roomForWords - 1];
        return pageOf([...byName, ...byWord], last ? { word: last.word, id: last.id } : afterWord);
      }

      if (!isByAddress) return pageOf([...byName, ...byWord], undefined);
      const address = 'email' in after ? after.email : '';
      const room = roomForWords - byWord.length;
      const scanned: Row[] = [];
      let byAddress: Row[] = [];
      // Usually no user was found both ways, so the first few are enough.
      for (const most of [room + 1, ADDRESSES_A_PAGE]) {
        const count = most - scanned.length;
        const next = await addressesAfter(rowsOf(tables), key, scanned.at(-1)?.email ?? address, count);
        scanned.push(...next);
        byAddress = scanned.filter((row) => !startsWith(key, row) && !(isByWord && wordOf(key, row) !== undefined));
        if (byAddress.length > room || next.length < count) break;
      }
      const shown = byAddress.slice(0, room);
      const end = byAddress.length > room ? (shown.at(-1)?.email ?? address) : scanned[ADDRESSES_A_PAGE - 1]?.email;
      return pageOf([...byName, ...byWord, ...shown], end === undefined ? undefined : { email: end });
    });

/** The search of the public list. */
export const createUserSearch = (
  database: Database,
  { publicColumns }: Pick<CustomFields, 'publicColumns'> = createCustomFields(),
): ((asked: SearchRequest) => Promise<UserPage>) =>
  createSearch(
    (read) => database.queryReplica(read),
    (tables) => existing(tables).select([...listedColumns, ...publicColumns, 'search_name as searchName']),
  );

const pageOf = <Row>(users: Row[], end: Position | undefined): UserPage<Row> => ({
  users,
  ...(end && { nextCursor: encode(end) }),
});

/**
 * Written out, because for the row comparison `(search_name, id) > (…, …)` MySQL reads the index from its beginning.
 */
function namesAfter<Row>(
  rows: SelectQueryBuilder<Tables, 'users', Row>,
  key: string,
  { name, id }: { name: string; id: string },
  most: number,
): Promise<Row[]> {
  const matches = rows.where('search_name', '>=', key).where('search_name', '<', afterPrefix(key));
  const rest = matches.where(({ and, eb, or }) =>
    or([eb('search_name', '>', name), and([eb('search_name', '=', name), eb('id', '>', id)])]),
  );
  return (name === '' ? matches : rest).orderBy('search_name').orderBy('id').limit(most).execute();
}

/** The rows of later words, each with its user. Written out for the same reason. */
function wordsAfter<Row>(
  rows: SelectQueryBuilder<Tables, 'users', Row>,
  key: string,
  { word, id }: { word: string; id: string },
  most: number,
) {
  const matches = rows
    .innerJoin('name_words', 'name_words.user_id', 'users.id')
    .select('name_words.word')
    .where('word', '>=', key)
    .where('word', '<', afterPrefix(key));
  const rest = matches.where(({ and, eb, or }) =>
    or([eb('word', '>', word), and([eb('word', '=', word), eb('user_id', '>', id)])]),
  );
  return (word === '' ? matches : rest).orderBy('word').orderBy('user_id').limit(most).execute();
}

async function addressesAfter<Row>(
  rows: SelectQueryBuilder<Tables, 'users', Row>,
  key: string,
  email: string,
  most: number,
): Promise<Row[]> {
  if (!/^[!-~]+$/.test(key)) return [];
  const inRange = rows.orderBy('email').limit(most).where('email', '<', `${key}\x7f`);
  return inRange.where('email', email === '' ? '>=' : '>', email || key).execute();
}
