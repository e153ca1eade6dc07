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

/** Counters of limits, and access tokens of applications, which are void. */
const shortLived = [
  { name: 'limit:', ms: 3_600_000 },
  { name: 'oauth:AccessToken:', ms: 300_000 },
];

/**
 * The places where any of these texts is stored, in any column or any key or value of the store: `users`, `session:…`.
 * What expires shortly, and the id in the event of the removal, are omitted.
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
    ({ key, keptMs }) => !shortLived.some(({ name, ms }) => key.includes(name) && keptMs <= ms),
  );
  return [...found, ...entries.filter(holds).map(({ key }) => key)];
}

const withoutRemoved = ({ user_id, ...row }: Record<string, unknown>) =>
  row['kind'] === 'user-removed' ? row : { user_id, ...row };
