/*
 * The file is readable by its owner only, and gets its name when it is complete. Exit code 2: wrong use or failure,
 * without a file.
 */

import { createWriteStream, existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { optionalProfileFields } from '../../entities/index.ts';
import { type ExportedUser, exportedUsers } from '../accounts/data/index.ts';
import { type CustomFields, createCustomFields } from '../accounts/users/index.ts';
import { loadConfig } from '../config/index.ts';
import { openDatabase } from '../parts/database/index.ts';
import { trustAuthorities } from '../process/authorities.ts';
import { isLanguage } from '../shared/texts/languages.ts';
import { explain, requireCurrentSchema, UsageError } from './failure.ts';
import type { UserRecord } from './user-records/record.ts';

/**
 * `npm run users:export -- FILE.ndjson`, or `npm run --silent users:export` to standard output. Exports all users with
 * password hashes for `npm run users:import` (docs/migration).
 */

const usage = 'Usage: npm run users:export [-- FILE.ndjson]';

/** Without unset fields. `fieldsIn` reads the operator's own fields that the import accepts. */
function recordOf(user: ExportedUser, fieldsIn: ReturnType<CustomFields['valuesFor']>): UserRecord {
  const profile = optionalProfileFields.flatMap((field) => (user[field] ? [[field, user[field]]] : []));
  const own = Object.fromEntries(Object.entries(fieldsIn?.(user.fields) ?? {}).filter(([, value]) => value !== null));
  return {
    email: user.email,
    name: user.name,
    ...Object.fromEntries(profile),
    ...(Object.keys(own).length > 0 && { fields: own }),
    ...(isLanguage(user.language) && { language: user.language }),
    emailVerified: user.emailVerified === 1,
    ...(user.passwordHash !== null && { passwordHash: user.passwordHash, passwordProven: user.passwordProven === 1 }),
    ...(user.blockedAt !== null && { blocked: true }),
    createdAt: new Date(user.createdAt).toISOString(),
    ...(user.identities.length > 0 && {
      identities: user.identities.map(({ provider, issuer, subject, email, proven }) => ({
        provider,
        issuer,
        subject,
        ...(email !== null && { email }),
        proven: proven === 1,
      })),
    }),
  };
}

async function exportUsers(file: string | undefined): Promise<void> {
  if (file !== undefined && existsSync(file)) throw new UsageError(`${file} already exists`);
  const config = loadConfig();
  trustAuthorities(config);
  const database = await openDatabase(config);
  const fieldsIn = createCustomFields(config.profileFields).valuesFor('administrators');
  let count = 0;
  async function* lines() {
    for await (const page of exportedUsers(database)) {
      count += page.length;
      yield page.map((user) => `${JSON.stringify(recordOf(user, fieldsIn))}\n`).join('');
    }
  }
  try {
    await requireCurrentSchema(database);
    if (file === undefined) await pipeline(Readable.from(lines()), process.stdout);
    else await writeWhole(file, lines());
  } finally {
    await database.close();
  }
  process.stderr.write(`${count} users exported\n`);
}

async function writeWhole(file: string, lines: AsyncIterable<string>): Promise<void> {
  const partial = `${file}.partial`;
  await rm(partial, { force: true });
  await pipeline(Readable.from(lines), createWriteStream(partial, { flags: 'wx', mode: 0o600, flush: true }));
  await rename(partial, file);
}

async function run(): Promise<void> {
  const { positionals } = parseArgs({ allowPositionals: true });
  if (positionals.length > 1) throw new UsageError(usage);
  await exportUsers(positionals[0]);
}

await run().catch((error: unknown) => {
  process.stderr.write(`${explain(error, usage)}\n`);
  process.exitCode = 2;
});
