import { TestRunner } from 'vitest';

/** Skips the running test, with the reason: what it asks for, a mutation run cannot give. */
export function outsideMutationRun(what: string): never {
  const reason = `${what}: not in a mutation run`;
  TestRunner.getCurrentTest()?.context.skip(reason);
  throw new Error(reason);
}
