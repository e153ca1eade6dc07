const wordsOf = (path: string) => path.replace(/.*(?:server|test)\//, '').split(/\W+/);

/** How many words of two paths are the same: rooms and modules have the names of their tests. A test's id begins with its path. */
export function nearness(test: string, file: string): number {
  const [path = ''] = test.split('#');
  const words = new Set(wordsOf(file));
  return new Set(wordsOf(path).filter((word) => words.has(word))).size;
}

/** What the first test of a file costs beside its own time: the file is loaded, and mostly starts a service. */
const FILE_MS = 500;

/**
 * The tests nearest to a file, among these the shortest, that take `budgetMs` together; at least one. Some mutants concern 3,000
 * tests; farther ones notice few and take minutes. `durations`: milliseconds by the test's id.
 */
export function nearestTests(
  tests: readonly string[],
  file: string,
  { durations, budgetMs }: { durations: Readonly<Record<string, number>>; budgetMs: number },
): string[] {
  const byNearness = tests
    .map((test) => ({ test, near: nearness(test, file), ms: durations[test] ?? 0 }))
    .sort((a, b) => b.near - a.near || a.ms - b.ms);
  const files = new Set<string>();
  let spentMs = 0;
  return byNearness
    .filter(({ test, ms }, index) => {
      const [path = ''] = test.split('#');
      spentMs += ms + (files.has(path) ? 0 : FILE_MS);
      files.add(path);
      return index === 0 || spentMs <= budgetMs;
    })
    .map(({ test }) => test);
}

/** For the configuration of Vitest, which loads this module a second time. */
export const mutatedFile = () => process.env['MUTATED_FILE'] ?? '';
