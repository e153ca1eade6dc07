import { strykerPlugins as ofVitest, strykerValidationSchema } from '@stryker-mutator/vitest-runner';
import { keptThread } from './kept-thread.ts';

export { strykerValidationSchema };

const [{ factory: runnerOfVitest }] = ofVitest as unknown as [{ factory: (injector: Injector) => Runner }];

/** The part of Stryker's injector that is used here. */
interface Injector {
  resolve(name: 'options'): { vitest: object };
  provideValue(name: 'options', value: object): Injector;
}

interface Runner {
  mutantRun(options: { testFilter?: string[] }): Promise<unknown>;
}

/** Of all names of tests one regular expression is made, which must not become too large. */
const LONGEST_NAME = 1000;

/** Stryker's runner of Vitest, on the kept thread. */
function keptRunner(injector: Injector) {
  const options = injector.resolve('options');
  const runner = runnerOfVitest(
    injector.provideValue('options', { ...options, vitest: { ...options.vitest, pool: keptThread } }),
  );
  const mutantRun: Runner['mutantRun'] = runner.mutantRun.bind(runner);
  runner.mutantRun = ({ testFilter, ...run }) =>
    mutantRun({ ...run, ...(testFilter && { testFilter: testFilter.filter((id) => id.length <= LONGEST_NAME) }) });
  return runner;
}
keptRunner.inject = ['$injector'];

interface Node {
  type: string;
  name?: string;
  callee?: Node;
  object?: Node;
  body?: Node;
  expression?: Node;
}

/** What is said in the log only. */
const ofLog = {
  shouldIgnore({ node }: { node: Node }): string | undefined {
    if ([node, node.expression, node.body].some(isLogCall)) return 'a line of the log';
    if (node.type === 'NewExpression' && node.callee?.name === 'Error') return 'a cause, which the log alone shows';
    return undefined;
  },
};

const isLogCall = (node: Node | undefined): boolean =>
  node?.type === 'CallExpression' && node.callee?.type === 'MemberExpression' && node.callee.object?.name === 'log';

export const strykerPlugins = [
  { kind: 'TestRunner', name: 'vitest-kept', factory: keptRunner },
  { kind: 'Ignore', name: 'log', value: ofLog },
];
