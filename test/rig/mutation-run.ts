/** Set by vitest.config.ts: a stack then runs in the process of the test, unless a test needs a process of its own. */
export const runsInProcess = process.env['SERVICE_IN_PROCESS'] === 'on';

/**
 * Set by test/mutation/vitest.config.ts. The service then runs in the test's process, where mutants can be activated, on
 * embedded parts and over REST only.
 */
export const isMutationRun = process.env['MUTATION_RUN'] === 'on';
