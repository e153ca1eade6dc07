import type { Database } from '../../parts/database/contract.ts';
import { storedFields, toStoredFields } from './custom-fields.ts';

/** Rows per read. Bounds the memory, however many users there are. */
const A_PAGE = 500;

/**
 * Removes the values of a field that is no longer configured, of all users. Each row is compared and changed in one
 * statement, so a user's own change meanwhile is kept; a pass that meets one is repeated. May be stopped and repeated.
 * Resolves to the number of values.
 */
export async function dropField(database: Database, name: string): Promise<number> {
  let dropped = 0;
  for (let isComplete = false; !isComplete; ) {
    isComplete = true;
    for await (const { id, fields } of usersWithFields(database)) {
      const values = storedFields(fields);
      if (!Object.hasOwn(values, name)) continue;
      const { [name]: _, ...others } = values;
      const { numUpdatedRows } = await database.write((tables) =>
        tables
          .updateTable('users')
          .set({ fields: toStoredFields(others) })
          .where('id', '=', id)
          .where('fields', '=', fields)
          .executeTakeFirst(),
      );
      if (numUpdatedRows === 1n) dropped += 1;
      else isComplete = false;
    }
  }
  while (await dropUniqueValues(database, name));
  return dropped;
}

async function* usersWithFields(database: Database): AsyncGenerator<{ id: string; fields: string }> {
  for (let after = ''; ; ) {
    const page = await database.query((tables) =>
      tables
        .selectFrom('users')
        .select(['id', 'fields'])
        // By id alone: there is no index of `fields`, and a page of users who have some could read the whole table.
        .where('id', '>', after)
        .orderBy('id')
        .limit(A_PAGE)
        .execute(),
    );
    for (const { id, fields } of page) if (fields !== null) yield { id, fields };
    const last = page.at(-1);
    if (!last || page.length < A_PAGE) return;
    after = last.id;
  }
}

/** Deletes a batch. Resolves to whether there may be more. */
const dropUniqueValues = (database: Database, field: string): Promise<boolean> =>
  database.change(async (tables) => {
    const rows = await tables
      .selectFrom('unique_values')
      .select('value_hash')
      .where('field', '=', field)
      .limit(A_PAGE)
      .execute();
    if (rows.length === 0) return false;
    const hashes = rows.map((row) => row.value_hash);
    await tables.deleteFrom('unique_values').where('field', '=', field).where('value_hash', 'in', hashes).execute();
    return true;
  });
