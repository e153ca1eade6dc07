const wordsOf = (path: string) => path.replace(/.*(?:server|test)\//, '').split(/\W+/);

/** How many words of two paths are the same: rooms and modules have the names of their tests. A test's id begins with its path. */
export function nearness(test: string, file: string): number {
  const [path = ''] = test.split('#');
  const words = new Set(wordsOf(file));
  return new Set(wordsOf(path).filter((word) => words.has(word))).size;
}

/** The tests nearest to a file, nearest first. Some mutants concern 3,000 tests; farther ones notice few and take minutes. */
export const nearestTests = (tests: string[], file: string, count: number): string[] =>
  tests
    .map((test) => ({ test, near: nearness(test, file) }))
    .sort((a, b) => b.near - a.near)
    .slice(0, count)
    .map(({ test }) => test);

/** For the configuration of Vitest, which loads this module a second time. */
export const mutatedFile = () => process.env['MUTATED_FILE'] ?? '';
