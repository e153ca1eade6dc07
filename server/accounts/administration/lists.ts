/**
 * The lists of users for administrators, without a search. Each is a stretch of an index that begins where the previous
 * page ended, so that a page costs the same however many users there are.
 */
import type { SelectQueryBuilder } from 'kysely';
import { z } from 'zod';
import type { Tables } from '../../parts/database/contract.ts';

/** Columns with an index that ends with the id. */
type Column = 'id' | 'search_name' | 'email' | 'blocked_at' | 'deleted_at';

interface List {
  by: Column;
  direction: 'asc' | 'desc';
  /** A column that has this value in every row. */
  only?: readonly [column: 'role' | 'email_verified', value: string | number];
}

/** What distinguishes a user from a regular one who can log in. Those who were blocked or deleted last come first. */
export const standings = {
  administrator: { by: 'id', direction: 'desc', only: ['role', 'admin'] },
  unverified: { by: 'id', direction: 'desc', only: ['email_verified', 0] },
  blocked: { by: 'blocked_at', direction: 'desc' },
  deleted: { by: 'deleted_at', direction: 'desc' },
} as const satisfies Record<string, List>;

/** The orders of all users: a minus means descending. Ids are in the order of their creation. */
export const sorts = {
  '-created': { by: 'id', direction: 'desc' },
  created: { by: 'id', direction: 'asc' },
  name: { by: 'search_name', direction: 'asc' },
  '-name': { by: 'search_name', direction: 'desc' },
  email: { by: 'email', direction: 'asc' },
  '-email': { by: 'email', direction: 'desc' },
} as const satisfies Record<string, List>;

export interface ListRequest {
  standing?: keyof typeof standings | undefined;
  sort?: keyof typeof sorts | undefined;
}

export const listOf = ({ standing, sort = '-created' }: ListRequest): List =>
  standing ? standings[standing] : sorts[sort];

/** The last row of a page: its value in the column of the order, and its id. */
const ascii = z.string().regex(/^[!-~]*$/);
const positionSchema = z.tuple([z.union([z.string(), z.number()]), ascii]);
type Position = z.output<typeof positionSchema>;

export const encodePosition = (position: Position): string =>
  Buffer.from(JSON.stringify(position)).toString('base64url');

function decode(cursor: string): Position | undefined {
  try {
    const position = positionSchema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
    return encodePosition(position) === cursor ? position : undefined;
  } catch {
    return undefined;
  }
}

/** Whether this is the cursor of a page of a list, not one by id. MySQL rejects text that is not ASCII for `email`. */
export function isListCursor(cursor: string, request: ListRequest): boolean {
  const { by } = listOf(request);
  const [value] = decode(cursor) ?? [];
  if (by.endsWith('_at')) return typeof value === 'number';
  return typeof value === 'string' && (by !== 'email' || ascii.safeParse(value).success);
}

/** The rows of a list after the cursor. Written out, because MySQL reads an index from its beginning for a row comparison. */
export function rowsOfList<Row>(
  rows: SelectQueryBuilder<Tables, 'users', Row>,
  { by, direction, only }: List,
  cursor: string | undefined,
): SelectQueryBuilder<Tables, 'users', Row> {
  const follows = direction === 'desc' ? '<' : '>';
  // In a unique column the id decides nothing, and an order by it would cost the index.
  const isUnique = by === 'id' || by === 'email';
  const [last, id] = (cursor !== undefined && (by === 'id' ? [cursor, cursor] : decode(cursor))) || [];
  const value = last as never;
  return rows
    .$if(only !== undefined, (users) => users.where(only?.[0] ?? 'role', '=', only?.[1] as never))
    .$if(by.endsWith('_at'), (users) => users.where(by, 'is not', null))
    .$if(last !== undefined && isUnique, (users) => users.where(by, follows, value))
    .$if(last !== undefined && !isUnique, (users) =>
      users
        .where(by, direction === 'desc' ? '<=' : '>=', value)
        .where(({ and, eb, or }) =>
          or([eb(by, follows, value), and([eb(by, '=', value), eb('id', follows, id as string)])]),
        ),
    )
    .orderBy(by, direction)
    .$if(!isUnique, (users) => users.orderBy('id', direction));
}
