import type { Reporter, TestModule, TestRunEndReason } from 'vitest/node';

type Outcomes = Record<'passed' | 'failed' | 'skipped', number>;

/**
 * Ends the output with one line for whoever reads no further: `N passed, N failed`, and `, N skipped` if any were. A failure
 * that belongs to no test case (a file that does not load, a hook, an error outside of tests, the global setup) counts as
 * failed too, so that a run that failed never says `0 failed`.
 */
export default class LastLineReporter implements Reporter {
  #outcomes: Outcomes = { passed: 0, failed: 0, skipped: 0 };

  onInit(): void {
    // Only at the exit is everything else written, and the exit code final: a failing global setup reports no run at all,
    // a failing teardown comes after it.
    process.once('exit', (code) => {
      process.stdout.write(`${lastLine(this.#outcomes, code !== 0)}\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[], reason: TestRunEndReason): void {
    this.#outcomes = { passed: 0, failed: errors.length, skipped: 0 };
    for (const module of modules) this.#count(module);
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

function lastLine({ passed, failed, skipped }: Outcomes, runFailed: boolean): string {
  const told = runFailed ? Math.max(failed, 1) : failed;
  return `${passed} passed, ${told} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
