import { isDeepStrictEqual } from 'node:util';
import { type Compilable, CompiledQuery, type Kysely } from 'kysely';

/**
 * A read compiled to SQL once per `shape`, such as the number of its parameters: compiling is the slowest step of a
 * small one. `parameters` must be in the order in which Kysely compiles them; the first call of a shape checks it.
 */
export function prepared<Row>() {
  /** Caches the text only: the compiled query holds the values of the first call and takes more memory. */
  const texts = new Map<string | number, string>();
  return async (
    tables: Pick<Kysely<never>, 'executeQuery'>,
    { shape, build, parameters }: { shape: string | number; build(): Compilable<Row>; parameters: readonly unknown[] },
  ): Promise<Row[]> => {
    const text = texts.get(shape) ?? textOf(build().compile(), parameters);
    texts.set(shape, text);
    return (await tables.executeQuery(CompiledQuery.raw(text, [...parameters]) as CompiledQuery<Row>)).rows;
  };
}

function textOf({ sql, parameters }: CompiledQuery, given: readonly unknown[]): string {
  if (!isDeepStrictEqual(parameters, given)) throw new Error(`the parameters are not in the order of: ${sql}`);
  return sql;
}
