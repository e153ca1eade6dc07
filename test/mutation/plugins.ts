import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { strykerPlugins as ofVitest, strykerValidationSchema } from '@stryker-mutator/vitest-runner';
import { keptThread } from './kept-thread.ts';
import { nearestTests } from './nearness.ts';
import { isSample, isSampled } from './sampling.ts';

export { strykerValidationSchema };

const [{ factory: runnerOfVitest }] = ofVitest as unknown as [{ factory: (injector: Injector) => Runner }];

/** The used part of Stryker's injector. */
interface Injector {
  resolve(name: 'options'): { vitest: object };
  provideValue(name: 'options', value: object): Injector;
}

interface Runner {
  ctx: { config: Bail; projects: { config: Bail }[] };
  dryRun(options: object): Promise<{ tests?: { id: string; status: number; timeSpentMs: number }[] }>;
  mutantRun(options: { activeMutant: { id: string; fileName: string }; testFilter?: string[] }): Promise<object>;
}

interface Bail {
  bail: number;
}

/** TestStatus.Failed of Stryker. */
const FAILED = 1;

/** All test names become one regular expression, which must not become too large. */
const MAX_NAME = 1000;

/** The time of the tests of a mutant, by their durations in the first run. A survivor takes this long. */
const BUDGET_MS = Number(process.env['MUTATION_BUDGET_MS'] ?? 60_000);

/** The durations, for the processes that judge. */
const DURATIONS = 'durations.json';

/** Stryker's Vitest runner, on the kept thread. */
function keptRunner(injector: Injector) {
  const options = injector.resolve('options');
  const runner = runnerOfVitest(
    injector.provideValue('options', { ...options, vitest: { ...options.vitest, pool: keptThread } }),
  );
  if (isSample) withoutFailing(runner);
  keepDurations(runner);
  let durations: Record<string, number> | undefined;
  const mutantRun: Runner['mutantRun'] = runner.mutantRun.bind(runner);
  runner.mutantRun = async ({ testFilter, ...run }) => {
    const { id, fileName } = run.activeMutant;
    if (!isSampled(id)) return { status: 'error', errorMessage: 'not in the sample' };
    process.env['MUTATED_FILE'] = fileName;
    durations ??= JSON.parse(readFileSync(DURATIONS, 'utf8')) as Record<string, number>;
    const began = performance.now();
    const result = await mutantRun({
      ...run,
      ...(testFilter && {
        testFilter: nearestTests(
          testFilter.filter((test) => test.length <= MAX_NAME),
          fileName,
          { durations, budgetMs: BUDGET_MS },
        ),
      }),
    });
    const file = process.env['MUTATION_RESULTS'];
    const ms = Math.round(performance.now() - began);
    if (file)
      appendFileSync(file, `${JSON.stringify({ ...run.activeMutant, ...result, tests: testFilter?.length, ms })}\n`);
    return result;
  };
  return runner;
}
keptRunner.inject = ['$injector'];

/** Writes how long each test took in the first run, into the copy of the repository in which all processes work. */
function keepDurations(runner: Runner): void {
  const dryRun = runner.dryRun.bind(runner);
  runner.dryRun = async (options) => {
    const result = await dryRun(options);
    const durations = Object.fromEntries(result.tests?.map(({ id, timeSpentMs }) => [id, timeSpentMs]) ?? []);
    writeFileSync(DURATIONS, JSON.stringify(durations));
    return result;
  };
}

/** A sample is taken on a machine that does much else: a test that fails there without a fault is left out, and judges none. */
function withoutFailing(runner: Runner): void {
  const dryRun = runner.dryRun.bind(runner);
  runner.dryRun = async (options) => {
    const configs = [runner.ctx, ...runner.ctx.projects].map(({ config }) => config);
    for (const config of configs) config.bail = 0;
    const { tests, ...result } = await dryRun(options);
    for (const config of configs) config.bail = 1;
    const passing = tests?.filter(({ status }) => status !== FAILED);
    console.log(`left out ${(tests?.length ?? 0) - (passing?.length ?? 0)} of ${tests?.length} tests`);
    return { ...result, ...(passing && { tests: passing }) };
  };
}

interface Node {
  type: string;
  name?: string;
  callee?: Node;
  object?: Node;
  body?: Node;
  expression?: Node;
}

/** Only logged. */
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
