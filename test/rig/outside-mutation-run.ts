import { TestRunner } from 'vitest';

/** Skips the running test in a mutation run, with the reason. */
export function outsideMutationRun(what: string): never {
  const reason = `${what}: not in a mutation run`;
  TestRunner.getCurrentTest()?.context.skip(reason);
  throw new Error(reason);
}
