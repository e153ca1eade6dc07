import { type Compilable, CompiledQuery, type Kysely } from 'kysely';

/**
 * A statement that is compiled to SQL once for each `shape`, such as the number of its parameters: compiling takes longer than
 * the other steps of a small one. `parameters` are the values of the built statement, in its order.
 */
export function prepared<Row>() {
  /** The text alone: what it was compiled from holds the values of the first call, and takes more memory than the text. */
  const texts = new Map<string | number, string>();
  return async (
    tables: Pick<Kysely<never>, 'executeQuery'>,
    { shape, build, parameters }: { shape: string | number; build(): Compilable<Row>; parameters: readonly unknown[] },
  ): Promise<Row[]> => {
    const text = texts.get(shape) ?? build().compile().sql;
    texts.set(shape, text);
    return (await tables.executeQuery(CompiledQuery.raw(text, [...parameters]) as CompiledQuery<Row>)).rows;
  };
}
