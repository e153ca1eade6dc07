import type { Reporter, TestModule, TestRunEndReason } from 'vitest/node';

type Outcomes = Record<'passed' | 'failed' | 'skipped', number>;

const SLOWEST = 10;

/**
 * Prints where the time went, which tests passed only at a second try, and as its last line `N passed, N failed`, and
 * `, N skipped` if any were.
 */
export default class LastLineReporter implements Reporter {
  #outcomes: Outcomes = { passed: 0, failed: 0, skipped: 0 };
  /** The milliseconds from the start of the run to its first file: servers, the client. */
  #setUpMs: number | undefined;
  readonly #begunAt = performance.now();

  onInit(): void {
    // Only at exit is all other output written and the exit code final: a failing global setup reports no run, and a failing
    // teardown comes later.
    process.once('exit', (code) => {
      process.stdout.write(`${lastLine(this.#outcomes, code !== 0)}\n`);
    });
  }

  onTestModuleStart(): void {
    this.#setUpMs ??= performance.now() - this.#begunAt;
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[], reason: TestRunEndReason): void {
    this.#outcomes = { passed: 0, failed: errors.length, skipped: 0 };
    for (const module of modules) this.#count(module);
    process.stdout.write(whereTheTimeWent(modules, this.#setUpMs ?? 0) + secondTries(modules));
    // A failure outside tests (a file that does not load, a hook, the global setup) counts: never `0 failed` then.
    if (reason !== 'passed' && this.#outcomes.failed === 0) this.#outcomes.failed = 1;
  }

  #count(module: TestModule): void {
    let failedTests = 0;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      // Pending at the end of the run: it never ran.
      this.#outcomes[state === 'pending' ? 'skipped' : state]++;
      if (state === 'failed') failedTests++;
    }
    if (module.state() === 'failed' && failedTests === 0) this.#outcomes.failed++;
  }
}

/** Seconds of the set-up, of all tests, of loading and of hooks, and of the slowest files. */
function whereTheTimeWent(modules: readonly TestModule[], setUpMs: number): string {
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
  const sum = (ms: readonly number[]) => ms.reduce((all, each) => all + each, 0);
  const files = modules.map((module) => {
    const { duration: all, collectDuration: loading } = module.diagnostic();
    const tests = sum([...module.children.allTests()].map((test) => test.diagnostic()?.duration ?? 0));
    return { name: module.relativeModuleId, all: all + loading, tests, loading };
  });
  const slowest = files.toSorted((a, b) => b.all - a.all).slice(0, SLOWEST);
  const all = sum(files.map((file) => file.all));
  const tests = sum(files.map((file) => file.tests));
  const loading = sum(files.map((file) => file.loading));
  const lines = [
    `\nSet-up of the run: ${seconds(setUpMs)}. Time in all files: ${seconds(all)}: tests ${seconds(tests)}, loading ${seconds(loading)}, hooks ${seconds(all - tests - loading)}. Slowest:`,
    ...slowest.map((file) => `  ${seconds(file.all).padStart(8)}  ${file.name}`),
  ];
  return `${lines.join('\n')}\n`;
}

/** The tests that failed once and then passed: each is a fault of the test, or of the service. */
function secondTries(modules: readonly TestModule[]): string {
  const flaky = modules.flatMap((module) =>
    [...module.children.allTests()]
      .filter((test) => test.diagnostic()?.flaky)
      .map((test) => `  ${module.relativeModuleId} > ${test.fullName}\n`),
  );
  return flaky.length > 0 ? `Passed only at the second try:\n${flaky.join('')}` : '';
}

function lastLine({ passed, failed, skipped }: Outcomes, runFailed: boolean): string {
  const shownFailed = runFailed ? Math.max(failed, 1) : failed;
  return `${passed} passed, ${shownFailed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
