import { entriesOf } from './key-value-view.ts';
import type { Stack } from './stack.ts';

/** The tables of the service's database, seen past the service. */
export async function tablesOf({ name, database }: Pick<Stack, 'name' | 'database'>): Promise<string[]> {
  const rows = await database<{ name: string }>(
    name === 'real'
      ? 'select table_name as name from information_schema.tables where table_schema = database()'
      : "select name from sqlite_master where type = 'table'",
  );
  return rows.map((row) => row.name);
}

/**
 * Where any of these texts is stored, in any column of any table or in any key or value of the store: `users`, `session:…`.
 * Counters of limits, which expire within their hour, are left out.
 */
export async function remainsOf(stack: Stack, texts: string[]): Promise<string[]> {
  const holds = (value: unknown) => texts.some((text) => JSON.stringify(value).includes(text));
  const found: string[] = [];
  for (const table of await tablesOf(stack)) {
    const rows = await stack.database(`select * from ${table}`);
    found.push(...rows.filter(holds).map(() => table));
  }
  const entries = (await entriesOf(stack)).filter(
    ({ key, keptMs }) => !(key.includes('limit:') && keptMs <= 3_600_000),
  );
  return [...found, ...entries.filter(holds).map(({ key }) => key)];
}
