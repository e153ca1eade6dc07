import { laterWords, searchKey } from '../../../entities/index.ts';
import type { AllTables } from '../../parts/database/contract.ts';

interface Named {
  id: string;
  name: string;
}

/** Stores the words by which administrators find these new users, in the transaction that inserts them. */
export async function storeNameWords(tables: AllTables, users: readonly Named[]): Promise<void> {
  const rows = users.flatMap(({ id, name }) => laterWords(searchKey(name)).map((word) => ({ user_id: id, word })));
  if (rows.length > 0) await tables.insertInto('name_words').values(rows).execute();
}

/** The same for a user with another name. */
export async function replaceNameWords(tables: AllTables, user: Named): Promise<void> {
  await tables.deleteFrom('name_words').where('user_id', '=', user.id).execute();
  await storeNameWords(tables, [user]);
}
