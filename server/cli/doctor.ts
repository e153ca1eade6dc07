import { setTimeout as delay } from 'node:timers/promises';
import { type Config, ConfigError, loadConfig } from '../config/index.ts';
import { sentenceOf } from '../log.ts';
import { trustAuthorities } from '../start/authorities.ts';
import { checkAddress } from './doctor/address.ts';
import { checkDatabase } from './doctor/database.ts';
import { type Check, type Finding, problem, warning } from './doctor/finding.ts';
import { identityProviderChecks } from './doctor/identity-providers.ts';
import { checkKeyValueStore } from './doctor/key-value.ts';
import { checkMail } from './doctor/mail.ts';
import { checkObjectStorage } from './doctor/object-storage.ts';
import { withoutSecrets } from './doctor/secrets.ts';

/**
 * `npm run doctor`: holds the configuration against the parts that it names. A line for each finding, with what to do about
 * it; exit code 1 if there is a problem.
 */

/** For one part. All are asked at once. */
const DEADLINE_MS = 20_000;

const checksFor = (config: Config): [part: string, check: Check][] => [
  ['database', checkDatabase],
  ['key-value store', checkKeyValueStore],
  ['object storage', checkObjectStorage],
  ['mail', checkMail],
  ...identityProviderChecks(config),
  ['address', checkAddress],
];

/** Never rejects: a check that fails, or takes too long, adds a problem to what it has found. */
async function examine(check: Check, config: Config): Promise<Finding[]> {
  const findings: Finding[] = [];
  const collect = async () => {
    for await (const finding of check(config)) findings.push(finding);
  };
  const giveUp = async () => {
    await delay(DEADLINE_MS, undefined, { ref: false });
    throw new Error(`no answer within ${DEADLINE_MS / 1000} s`);
  };
  try {
    await Promise.race([collect(), giveUp()]);
  } catch (error) {
    findings.push(problem(sentenceOf(error), 'see that it runs, and that this machine reaches it'));
  }
  return findings;
}

async function doctor(): Promise<void> {
  const config = loadConfig();
  trustAuthorities(config);
  const checks = checksFor(config);
  const found = await Promise.all(checks.map(([, check]) => examine(check, config)));
  const settings = config.warnings.map((text) => warning(text, 'see README, “Configuration”'));
  const lines = [
    ...settings.map((finding) => lineOf('settings', finding)),
    ...checks.flatMap(([part], i) => (found[i] ?? []).map((finding) => lineOf(part, finding))),
  ];
  process.stdout.write(withoutSecrets(lines.join(''), config));
  process.exitCode = found.flat().some(({ level }) => level === 'problem') ? 1 : 0;
}

const lineOf = (part: string, finding: Finding): string => {
  const text = finding.text.replace(/\.$/, '');
  const remedy = finding.level === 'ok' ? '' : `. ${finding.remedy[0]?.toUpperCase()}${finding.remedy.slice(1)}`;
  return `${finding.level.padEnd(8)} ${part.padEnd(16)} ${text}${remedy}\n`;
};

await doctor().catch((error: unknown) => {
  process.stderr.write(`${error instanceof ConfigError ? error.message : (error as Error).stack}\n`);
  process.exitCode = 1;
});
// What a part still holds open is no reason to stay.
process.exit();
