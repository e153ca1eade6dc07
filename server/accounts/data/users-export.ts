import { optionalProfileFields } from '../../../entities/index.ts';
import { columnsOf, type Database } from '../../parts/database/contract.ts';
import { existing } from '../users/index.ts';

/** Rows per read. Bounds the memory, however many rows there are. */
const A_PAGE = 500;

const userFields = [
  'id',
  'email',
  'name',
  ...optionalProfileFields,
  'fields',
  'language',
  'emailVerified',
  'passwordHash',
  'passwordProven',
  'blockedAt',
  'createdAt',
] as const;
const identityFields = ['userId', 'provider', 'issuer', 'subject', 'email', 'proven'] as const;

export type ExportedUser = Awaited<ReturnType<typeof readPage>>[number];

/**
 * All users with their identities, in pages, oldest first, except users who have requested deletion. A page shows the
 * data at the time of its read.
 */
export async function* exportedUsers(database: Database): AsyncGenerator<ExportedUser[]> {
  for (let after = ''; ; ) {
    const page = await readPage(database, after);
    if (page.length > 0) yield page;
    const last = page.at(-1);
    if (!last || page.length < A_PAGE) return;
    after = last.id;
  }
}

const readPage = (database: Database, after: string) =>
  database.query(async (tables) => {
    const users = await existing(tables)
      .select(columnsOf(userFields))
      .where('id', '>', after)
      .orderBy('id')
      .limit(A_PAGE)
      .execute();
    if (users.length === 0) return [];
    const ids = users.map(({ id }) => id);
    const identities = await tables
      .selectFrom('identities')
      .select(columnsOf(identityFields))
      .where('user_id', 'in', ids)
      .orderBy('created_at')
      .orderBy('id')
      .execute();
    const byUser = Map.groupBy(identities, ({ userId }) => userId);
    return users.map((user) => ({ ...user, identities: byUser.get(user.id) ?? [] }));
  });
