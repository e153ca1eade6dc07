/*
 * Exit code 1: a line was refused, 2: wrong use or failure, 130: after a signal.
 */

import { once } from 'node:events';
import { createReadStream, type ReadStream } from 'node:fs';
import { parseArgs } from 'node:util';
import { createUserImport, type ImportOutcome, type UserImport } from '../accounts/data/index.ts';
import { type CustomFields, createCustomFields } from '../accounts/users/index.ts';
import { createActivity } from '../activity/index.ts';
import { type Config, loadConfig } from '../config/index.ts';
import type { Database } from '../parts/database/contract.ts';
import { openDatabase } from '../parts/database/index.ts';
import { trustAuthorities } from '../process/authorities.ts';
import { onStopSignal } from '../process/stop-signals.ts';
import { keyAt, normalizedAddress } from '../uploads/upload-address.ts';
import { explain, requireCurrentSchema, UsageError } from './failure.ts';
import { linesOf } from './user-records/lines.ts';
import { createRecordReader, type ParsedRecord } from './user-records/record.ts';
import { createReport, type LineOutcome, outcomeOf, type Report } from './user-records/report.ts';
import { createSeen } from './user-records/seen.ts';

/**
 * `npm run users:import -- FILE.ndjson [--dry-run]`: imports users, one JSON object a line (docs/migration). Skips
 * existing users, so it can be stopped and repeated.
 */

const usage = 'Usage: npm run users:import -- FILE.ndjson [--dry-run]';

/** Rows in one transaction, which must end within the database's deadline. */
const BATCH = 500;

/** A line that is already decided (`outcome`), or with the user that the database decides about. */
type Read = { line: number } & (ReadUser | { outcome: LineOutcome });

type ReadUser = Exclude<ParsedRecord, { problem: string }>;

async function* recordsOf(
  file: ReadStream,
  read: (text: string) => ParsedRecord,
  { uniqueIn }: Pick<CustomFields, 'uniqueIn'>,
): AsyncGenerator<Read> {
  const seen = createSeen();
  try {
    for await (const line of linesOf(file)) {
      if ('text' in line && line.text.trim() === '') continue;
      const parsed = 'text' in line ? read(line.text) : line;
      yield {
        line: line.number,
        ...('problem' in parsed ? refused(parsed.problem) : firstOf(parsed, line.number)),
      };
    }
  } finally {
    seen.close();
  }

  /** The first of several lines with one address is imported; two users with one identity are refused. */
  function firstOf(read: ReadUser, line: number) {
    const { user } = read;
    const identities = user.identities.map(({ issuer, subject }) => `${issuer}\n${subject}`);
    const values = uniqueIn(user.fields).map((unique) => `${unique.field}=${unique.value_hash}`);
    const earlier = seen.firstWith([user.email, ...identities, ...values], line);
    if (earlier === undefined) return read;
    if (earlier.key === user.email) return skipped(`line ${earlier.line} has this address`);
    const what = values.includes(earlier.key) ? 'the value of a unique field' : 'one of its identities';
    return refused(`line ${earlier.line} has ${what}`);
  }
}

const refused = (reason: string) => ({ outcome: { kind: 'refused', reason } as const });
const skipped = (reason: string) => ({ outcome: { kind: 'skipped', reason } as const });

/** Reports a batch of lines in their order. */
async function completeBatch(batch: readonly Read[], decide: UserImport['importAll'], report: Report): Promise<void> {
  const users = batch.flatMap((read) => ('user' in read ? [read.user] : []));
  const outcomes = users.length > 0 ? await decide(users) : [];
  let next = 0;
  for (const read of batch) {
    report.add(read.line, 'outcome' in read ? read.outcome : decided(read, outcomes[next++]));
  }
}

const decided = ({ note }: ReadUser, outcome: ImportOutcome = 'exists'): LineOutcome =>
  outcome === 'imported' && note ? { kind: 'imported', note } : outcomeOf[outcome];

/** With AVATARS=own an avatar must be at a URL where this service stores uploads. */
const avatarRule = ({ ownAvatars, s3, appUrl }: Config) => {
  const base = `${s3?.publicUrl ?? appUrl}/uploads/`;
  return (address: string): string | null =>
    ownAvatars && !keyAt(address, base) ? null : normalizedAddress(address, base);
};

async function importUsers(path: string, { isDryRun, stopping }: { isDryRun: boolean; stopping: AbortSignal }) {
  const config = loadConfig();
  trustAuthorities(config);
  const file = createReadStream(path);
  await once(file, 'open');
  const database = await openDatabase(config);
  const report = createReport(process.stdout);
  const imported = isDryRun ? 'would be imported' : 'imported';
  try {
    await (isDryRun ? requireCurrentSchema(database) : database.migrate());
    const customFields = createCustomFields(config.profileFields);
    const decide = deciderOn(database, config, { isDryRun, customFields });
    const readRecord = createRecordReader({ ...config, avatarAt: avatarRule(config), customFields });
    let batch: Read[] = [];
    for await (const read of recordsOf(file, readRecord, customFields)) {
      batch.push(read);
      if (batch.length < BATCH) continue;
      await completeBatch(batch, decide, report);
      batch = [];
      if (stopping.aborted) break;
    }
    await completeBatch(batch, decide, report);
  } finally {
    report.end({ imported });
    await database.close();
  }
  if (stopping.aborted) process.stdout.write('Stopped: run the same command to continue\n');
  process.exitCode = stopping.aborted ? 130 : Number(report.hasRefused);
}

function deciderOn(
  database: Database,
  { activityDays }: Config,
  { isDryRun, customFields }: { isDryRun: boolean; customFields: CustomFields },
) {
  const activity = createActivity(database, { keptDays: activityDays });
  const { preview, importAll } = createUserImport(database, activity, customFields);
  return isDryRun ? preview : importAll;
}

const stopping = new AbortController();
onStopSignal({
  async stop() {
    stopping.abort();
  },
  stopAtOnce: () => process.exit(130),
});

async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { 'dry-run': { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const [file] = positionals;
  if (file === undefined || positionals.length > 1) throw new UsageError(usage);
  await importUsers(file, { isDryRun: values['dry-run'], stopping: stopping.signal });
}

await run().catch((error: unknown) => {
  process.stderr.write(`${explain(error, usage)}\n`);
  process.exitCode = 2;
});
