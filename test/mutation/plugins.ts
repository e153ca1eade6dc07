import { strykerPlugins as ofVitest, strykerValidationSchema } from '@stryker-mutator/vitest-runner';
import { keptThread } from './kept-thread.ts';

export { strykerValidationSchema };

const [{ factory: runnerOfVitest }] = ofVitest as unknown as [{ factory: (injector: Injector) => unknown }];

/** The part of Stryker's injector that is used here. */
interface Injector {
  resolve(name: 'options'): { vitest: object };
  provideValue(name: 'options', value: object): Injector;
}

/** Stryker's runner of Vitest, on the kept thread. */
function keptRunner(injector: Injector) {
  const options = injector.resolve('options');
  return runnerOfVitest(
    injector.provideValue('options', { ...options, vitest: { ...options.vitest, pool: keptThread } }),
  );
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
