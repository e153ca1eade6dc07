// `npm run audit`: fails if a production dependency has a known vulnerability. If a registry answers no audits, like
// mirrors, it says so and passes.
import { spawnSync } from 'node:child_process';

interface Audit {
  /** Replaces the result if the registry has no audit result. */
  message?: string;
  error?: { summary: string };
  metadata?: { vulnerabilities: { total: number } };
  vulnerabilities?: Record<string, { severity: string; range: string }>;
}

const { stdout, stderr } = spawnSync('npm', ['audit', '--omit=dev', '--json'], { encoding: 'utf8' });
const { message, error, metadata, vulnerabilities = {} } = parse(stdout);
if (!metadata) {
  console.log(`Not audited: ${message || error?.summary || stderr}`);
} else {
  for (const [name, { severity, range }] of Object.entries(vulnerabilities))
    console.error(`${severity}: ${name} ${range}`.trim());
  console.log(`${metadata.vulnerabilities.total} known vulnerabilities in production dependencies`);
  process.exitCode = metadata.vulnerabilities.total > 0 ? 1 : 0;
}

function parse(text: string): Audit {
  try {
    return JSON.parse(text) as Audit;
  } catch {
    return {};
  }
}
