import type { Compilable, CompiledQuery, Kysely } from 'kysely';

/**
 * A statement that is compiled to SQL once for each `shape`, such as the number of its parameters: compiling takes longer than
 * the other steps of a small one. `parameters` are the values of the built statement, in its order.
 */
export function prepared<Row>() {
  const statements = new Map<string | number, CompiledQuery<Row>>();
  return async (
    tables: Pick<Kysely<never>, 'executeQuery'>,
    { shape, build, parameters }: { shape: string | number; build(): Compilable<Row>; parameters: readonly unknown[] },
  ): Promise<Row[]> => {
    const statement = statements.get(shape) ?? build().compile();
    statements.set(shape, statement);
    return (await tables.executeQuery<Row>({ ...statement, parameters })).rows;
  };
}
