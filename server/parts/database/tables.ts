import { UnderscoreNamingStrategy } from '@mikro-orm/core';
import type { InferKyselyDB, SnakeCase } from '@mikro-orm/sql';
import type { schemas } from '../../../entities/index.ts';

type EntityTables = InferKyselyDB<(typeof schemas)[number]>;

/** Distributes over `null`, so that a nullable column stays nullable. */
type Stored<Value> = Value extends boolean ? number : Value;

/**
 * Kysely's types of the entities' tables: rows as the drivers return them, booleans as 0 or 1, times in milliseconds.
 */
export type Tables = {
  [Table in keyof EntityTables]: {
    [Column in keyof EntityTables[Table]]: Stored<EntityTables[Table][Column]>;
  };
};

type ColumnOf<Field extends string> = Field extends SnakeCase<Field> ? Field : `${SnakeCase<Field>} as ${Field}`;

/** The ORM's own rule. */
const naming = new UnderscoreNamingStrategy();
const columns = new Map<string, string>();

/** Cached: the rule takes as long as all other work on a field of a row. */
function columnOf(field: string): string {
  const column = columns.get(field) ?? naming.propertyToColumnName(field);
  columns.set(field, column);
  return column;
}

/** Selects the columns of an entity's fields under the names of the fields: `email_verified as emailVerified`. */
export const columnsOf = <Field extends string>(fields: readonly Field[]) =>
  fields.map((field) => {
    const column = columnOf(field);
    return (column === field ? field : `${column} as ${field}`) as ColumnOf<Field>;
  });

/** The row of an entity of that table; booleans as 0 or 1. */
export const rowOf = <Table extends keyof Tables>(_table: Table, entity: object): Tables[Table] =>
  Object.fromEntries(
    Object.entries(entity).map(([field, value]) => [
      columnOf(field),
      typeof value === 'boolean' ? Number(value) : value,
    ]),
  ) as Tables[Table];
