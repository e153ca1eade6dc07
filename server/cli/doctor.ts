import { type Config, loadConfig } from '../config/index.ts';
import { trustAuthorities } from '../process/authorities.ts';
import { readTexts } from '../texts/index.ts';
import { checkAddress } from './doctor/address.ts';
import { checkBrand } from './doctor/brand.ts';
import { checkDatabase } from './doctor/database.ts';
import { examine, PART_DEADLINE_MS } from './doctor/examination.ts';
import type { Check, Finding } from './doctor/finding.ts';
import { identityProviderChecks } from './doctor/identity-providers.ts';
import { checkKeyValueStore } from './doctor/key-value.ts';
import { checkMail } from './doctor/mail.ts';
import { checkObjectStorage } from './doctor/object-storage.ts';
import { checkScanner } from './doctor/scanner.ts';
import { withoutSecrets } from './doctor/secrets.ts';
import { checkSettings } from './doctor/settings.ts';
import { explain } from './failure.ts';

/**
 * `npm run doctor`: checks the configuration against the parts that it names. Prints a line per finding with its
 * remedy; exit code 1 if there is a problem.
 */

const checksFor = (config: Config): [part: string, check: Check][] => [
  ['settings', checkSettings],
  ['database', checkDatabase],
  ['key-value store', checkKeyValueStore],
  ['object storage', checkObjectStorage],
  ['mail', checkMail],
  ...(config.scan ? ([['scanner', checkScanner]] as [string, Check][]) : []),
  ...identityProviderChecks(config),
  ['address', checkAddress],
  ['brand', checkBrand],
];

async function doctor(): Promise<void> {
  const config = loadConfig();
  // A start refuses it too.
  readTexts(config.textsDir);
  trustAuthorities(config);
  const checks = checksFor(config);
  const found = await Promise.all(checks.map(([, check]) => examine(check(config), PART_DEADLINE_MS)));
  const lines = checks.flatMap(([part], i) => (found[i] ?? []).map((finding) => lineOf(part, finding)));
  process.stdout.write(withoutSecrets(lines.join(''), config));
  process.exitCode = found.flat().some(({ level }) => level === 'problem') ? 1 : 0;
}

const lineOf = (part: string, finding: Finding): string => {
  const text = finding.text.replace(/\.$/, '');
  const remedy = finding.level === 'ok' ? '' : `. ${finding.remedy[0]?.toUpperCase()}${finding.remedy.slice(1)}`;
  return `${finding.level.padEnd(8)} ${part.padEnd(16)} ${text}${remedy}\n`;
};

await doctor().catch((error: unknown) => {
  process.stderr.write(`${explain(error)}\n`);
  process.exitCode = 1;
});
// Exits although a part may still hold handles open.
process.exit();
