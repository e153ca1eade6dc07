import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isSampled } from './sampling.ts';

/**
 * `node test/mutation/sample.ts COMMIT [SHARE] [SEED] [FOLDERS] [TEST_FILES]`: plants a random share (0.05, or a part of
 * all, such as 0.25-0.5) of the faults that Stryker knows for the lines added or changed since a commit. Folders, and
 * patterns of test files, have commas between them.
 */
const FOLDERS = 'server/accounts/,server/limits/,server/uploads/,server/http/,routers/';
/** A busy machine must kill no mutant by its time limit. */
const TIMEOUT_MS = 30_000;

interface Mutant {
  id: string;
  mutatorName: string;
  replacement?: string;
  status: string;
  statusReason?: string;
  location: { start: { line: number } };
}

/** `file:first-last` of each hunk, as Stryker takes them. */
function addedSince(commit: string, folders: string[]): string[] {
  const options = ['--unified=0', '--ignore-all-space', '--find-renames', '--find-copies', '-l10000'];
  const diff = execFileSync('git', ['diff', ...options, commit], { encoding: 'utf8', maxBuffer: 1e9 });
  let file = '';
  return diff.split('\n').flatMap((line) => {
    file = /^\+\+\+ b\/(.*)/.exec(line)?.[1] ?? file;
    const [, first, count = '1'] = /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    const isCode = file.endsWith('.ts') && folders.some((folder) => file.startsWith(folder));
    if (first === undefined || count === '0' || !isCode) return [];
    return `${file}:${first}-${Number(first) + Number(count) - 1}`;
  });
}

/** Wilson's interval of 95 % for a share. */
function interval(part: number, of: number): [low: number, high: number] {
  const z = 1.96;
  const middle = (part + z ** 2 / 2) / (of + z ** 2);
  const half = (z / (of + z ** 2)) * Math.sqrt((part * (of - part)) / of + z ** 2 / 4);
  return [middle - half, middle + half];
}

const percent = (share: number) => `${(100 * share).toFixed(1)} %`;

const { default: configuration } = await import(join(import.meta.dirname, 'stryker.config.mjs'));
const [commit = '', share = '0.05', seed = String(Date.now()), folders = FOLDERS, testFiles] = process.argv.slice(2);
const sample = `${share},${seed}`;
const directory = join('node_modules/.cache/stryker', `sample-${process.pid}`);
const report = join(directory, 'mutation.json');
const config = join(directory, 'stryker.config.json');
mkdirSync(directory, { recursive: true });
writeFileSync(
  config,
  JSON.stringify({
    ...configuration,
    mutate: addedSince(commit, folders.split(',')),
    ...(testFiles && { testFiles: testFiles.split(',') }),
    incremental: false,
    reporters: ['json', 'progress-append-only'],
    jsonReporter: { fileName: report },
    timeoutMS: TIMEOUT_MS,
    dryRunTimeoutMinutes: 120,
  }),
);
// A run that is cut off leaves the results so far.
const variables = { MUTATION_SAMPLE: sample, MUTATION_RESULTS: join(directory, 'results.jsonl') };
// Its exit code is for the score of all mutants.
spawnSync('stryker', ['run', config], { stdio: 'inherit', env: { ...process.env, ...variables } });

const { files } = JSON.parse(readFileSync(report, 'utf8')) as { files: Record<string, { mutants: Mutant[] }> };
const mutants = Object.entries(files)
  .flatMap(([file, { mutants }]) => mutants.map((mutant) => ({ file, ...mutant })))
  .filter(({ status }) => status !== 'Ignored');
const sampled = mutants.filter(({ id }) => isSampled(id, sample));
const countOf = (...statuses: string[]) => sampled.filter(({ status }) => statuses.includes(status)).length;
// A time limit may be the machine's fault.
const isDoubtful = ({ status, statusReason = '' }: Mutant) =>
  status !== 'Killed' || /timed out|not within/.test(statusReason);
for (const mutant of sampled.filter(isDoubtful)) {
  const { file, status, mutatorName, location, replacement, statusReason } = mutant;
  console.log(status, `${file}:${location.start.line}`, mutatorName, JSON.stringify(replacement), statusReason ?? '');
}
const noticed = countOf('Killed', 'Timeout');
const judged = noticed + countOf('Survived', 'NoCoverage');
const [low, high] = interval(noticed, judged);
console.log(
  `${judged} of ${mutants.length} mutants (seed ${seed}): killed ${countOf('Killed')}, timed out ${countOf('Timeout')}, ` +
    `survived ${countOf('Survived')}, not covered ${countOf('NoCoverage')}; other ${sampled.length - judged}; ` +
    `noticed ${percent(noticed / judged)} (95 %: ${percent(low)} to ${percent(high)})`,
);
