const wordsOf = (path: string) => path.replace(/.*(?:server|test)\//, '').split(/\W+/);

/** How many words of two paths are the same: rooms and modules have the names of their tests. A test's id begins with its path. */
export function nearness(test: string, file: string): number {
  const [path = ''] = test.split('#');
  const words = new Set(wordsOf(file));
  return new Set(wordsOf(path).filter((word) => words.has(word))).size;
}

/** For the configuration of Vitest, which loads this module a second time. */
export const mutatedFile = () => process.env['MUTATED_FILE'] ?? '';
