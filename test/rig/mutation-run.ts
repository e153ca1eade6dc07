/**
 * Set by test/mutation/vitest.config.ts. The service then runs in the process of the test, where mutants can be switched
 * on, on embedded parts and over REST only.
 */
export const isMutationRun = process.env['MUTATION_RUN'] === 'on';
