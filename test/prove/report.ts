import { endedSessions } from '../rig/observe/history.ts';
import { isEnd, isSpent } from '../rig/observe/tokens.ts';
import { type Found, type Kind, kinds } from './evidence.ts';
import type { Figures } from './figures.ts';
import type { Pass } from './run.ts';

export interface Report {
  commit: string;
  date: string;
  machine: string;
  versions: string;
  /** The release that the first pass started with. */
  from: string;
  minutes: number;
  passes: (Pass & { found: Found })[];
  /** Planted faults, and whether the checker found them. */
  planted: { name: string; found: boolean }[];
}

const seconds = (ms: number) => (ms / 1000).toFixed(1);
const table = (head: string[], rows: (string | number)[][]) =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
const number = (value: number) => value.toLocaleString('en');

/** docs/proof.md. */
export function reportOf({ commit, date, machine, versions, from, minutes, passes, planted }: Report): string {
  const calls = sum(passes, ({ evidence: { history, uses } }) => history.length + uses.length);
  const ms = sum(passes, (pass) => pass.ms);
  const failed = passes.flatMap(({ found }) => Object.values(found).flat());
  const missed = planted.filter(({ found }) => !found);
  return `# Proof

Written by \`npm run prove -- --minutes ${minutes}\` on ${date}; [how it works](../test/prove/README.md). Do not edit.

| | |
|---|---|
| Commit | ${commit} |
| Machine | ${machine} |
| Versions | ${versions} |
| Set-up | two production instances behind HAProxy (the file of docs/deploy), three Galera nodes, ${passes.map(({ redis }) => redis).join('; then ')} |
| Upgraded from | ${from} |
| Duration | ${Math.round(ms / 60_000)} minutes under load, ${number(calls)} calls, ${Math.round(calls / (ms / 1000))} a second (modest: load, clusters and service share the machine) |
| Result | ${failed.length === 0 ? '**nothing lost, doubled or left alive**' : `**${failed.length} ${failed.length === 1 ? 'contradiction' : 'contradictions'}**`} |

## What was acknowledged, and what was found

${table(
  ['Checked', 'Contradiction', 'Found'],
  (Object.keys(kinds) as Kind[]).map((kind) => [
    `${number(sum(passes, (pass) => countedFor[kind](pass)))} ${counted[kind]}`,
    kinds[kind],
    sum(passes, ({ found }) => found[kind].length),
  ]),
)}
${
  failed.length === 0
    ? ''
    : `\n${failed
        .slice(0, 20)
        .map((text) => `- ${text}`)
        .join('\n')}\n`
}
## Faults

Refused: answered 503, or not at all. Gap: the longest time in which no call of any user was answered. Back: from the fault to the last
refused call. p99: of answered calls, in milliseconds.

${passes.map(({ redis, rows }) => `### With ${redis}\n\n${faultTable(rows)}`).join('\n\n')}

## The checker finds faults

Planted into the evidence of this run, one at a time: ${planted.length - missed.length} of ${planted.length} were found.

${planted.map(({ name, found }) => `- ${name}: ${found ? 'found' : '**not found**'}`).join('\n')}
`;
}

const faultTable = (rows: Pass['rows']) =>
  table(
    ['Fault', 'Times', 'Calls', 'Refused', 'Gap, s', 'Back, s', 'p99 before', 'during', 'after'],
    [...Map.groupBy(rows, ({ fault }) => fault)].map(([fault, times]) => {
      const longest = (of: (figures: Figures) => number) => Math.max(...times.map(of));
      return [
        fault,
        times.length,
        number(sum(times, (one) => one.calls)),
        number(sum(times, ({ refused }) => refused)),
        seconds(longest(({ gapMs }) => gapMs)),
        seconds(longest(({ recoveryMs }) => recoveryMs)),
        ...([0, 1, 2] as const).map((i) => Math.round(longest(({ p99Ms }) => p99Ms[i]))),
      ];
    }),
  );

const isDone = ({ status = 0 }: { status?: number | undefined }) => status >= 200 && status < 300;
const done = ({ evidence }: Pass, ...actions: string[]) =>
  evidence.history.filter((entry) => isDone(entry) && actions.includes(entry.action)).length;

const counted: Record<Kind, string> = {
  lost: 'acknowledged acts and open sessions',
  doubled: 'events',
  survived: 'ended sessions, grants and keys',
  spentTwice: 'spent single-use tokens',
  webhooks: 'deliveries',
  uploads: 'uploads and declarations',
  mails: 'mails',
  answers: 'calls',
};
const countedFor: Record<Kind, (pass: Pass) => number> = {
  lost: ({ evidence: { history, uses } }) =>
    history.filter(isDone).length + uses.filter(({ accepted }) => accepted).length,
  doubled: ({ evidence }) => evidence.events.length,
  survived: ({ evidence }) => endedSessions(evidence.history).length + evidence.uses.filter(isEnd).length,
  spentTwice: (pass) => done(pass, 'reset') + pass.evidence.uses.filter(isSpent).length,
  webhooks: ({ evidence }) => sum(evidence.receivers, ({ received }) => received.length),
  uploads: (pass) => done(pass, 'upload', 'declare'),
  mails: ({ evidence }) => evidence.outcome.mails.length,
  answers: ({ evidence }) => evidence.history.length + evidence.uses.length,
};

const sum = <T>(all: readonly T[], of: (one: T) => number): number => all.reduce((total, one) => total + of(one), 0);
