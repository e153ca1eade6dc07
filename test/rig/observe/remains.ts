import type { Stack } from '../stack.ts';
import { entriesOf } from './key-value-view.ts';

/** Direct access to the tables of the service's database. */
export async function tablesOf({ name, database }: Pick<Stack, 'name' | 'database'>): Promise<string[]> {
  const rows = await database<{ name: string }>(
    name === 'real'
      ? 'select table_name as name from information_schema.tables where table_schema = database()'
      : "select name from sqlite_master where type = 'table'",
  );
  return rows.map((row) => row.name);
}

/**
 * The places where any of these texts is stored, in any column or any key or value of the store: `users`, `session:…`.
 * Counters of limits, which expire within an hour, and the id in the event of the removal are omitted.
 */
export async function remainsOf(stack: Stack, texts: string[]): Promise<string[]> {
  const holds = (value: unknown) => texts.some((text) => JSON.stringify(value).includes(text));
  const found: string[] = [];
  for (const table of await tablesOf(stack)) {
    const rows = await stack.database(`select * from ${table}`);
    found.push(
      ...rows
        .map(withoutRemoved)
        .filter(holds)
        .map(() => table),
    );
  }
  const entries = (await entriesOf(stack)).filter(
    ({ key, keptMs }) => !(key.includes('limit:') && keptMs <= 3_600_000),
  );
  return [...found, ...entries.filter(holds).map(({ key }) => key)];
}

const withoutRemoved = ({ user_id, ...row }: Record<string, unknown>) =>
  row['kind'] === 'user-removed' ? row : { user_id, ...row };
