import { setTimeout as delay } from 'node:timers/promises';
import { sentenceOf } from '../../telemetry/log.ts';
import { type Finding, problem } from './finding.ts';

/** The maximum time for one part. */
export const PART_DEADLINE_MS = 20_000;
/** The maximum time for one server of a part; some are only found through others. */
const SERVER_DEADLINE_MS = 8000;

/** Never rejects: a check that fails or times out adds a problem to its findings. */
export async function examine(check: AsyncIterable<Finding>, deadlineMs: number): Promise<Finding[]> {
  const findings: Finding[] = [];
  const collect = async () => {
    for await (const finding of check) findings.push(finding);
  };
  const giveUp = async () => {
    await delay(deadlineMs, undefined, { ref: false });
    throw new Error(`no answer within ${deadlineMs / 1000} s`);
  };
  try {
    await Promise.race([collect(), giveUp()]);
  } catch (error) {
    findings.push(problem(sentenceOf(error), 'check that it runs, and that this machine can reach it'));
  }
  return findings;
}

/** Checks the servers of one part concurrently. Findings begin with the server's name, if it has one. */
export async function* examineServers(
  servers: Iterable<readonly [name: string, check: AsyncIterable<Finding>]>,
): AsyncGenerator<Finding> {
  const examined = await Promise.all(
    [...servers].map(async ([name, check]) => {
      const findings = await examine(check, SERVER_DEADLINE_MS);
      return findings.map((finding) => ({ ...finding, text: [name, finding.text].filter(Boolean).join(': ') }));
    }),
  );
  yield* examined.flat();
}
