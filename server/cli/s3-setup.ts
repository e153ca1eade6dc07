import { parseArgs } from 'node:util';
import { type Config, loadConfig } from '../config/index.ts';
import { type BucketSetting, bucketSettings, isNotImplemented } from '../parts/object-storage/bucket-settings.ts';
import { type ObjectStorage, prefixes } from '../parts/object-storage/contract.ts';
import { openObjectStorage } from '../parts/object-storage/index.ts';
import { presigner } from '../parts/object-storage/s3-addresses.ts';
import { connectS3, hasCode, type S3Config } from '../parts/object-storage/s3-client.ts';
import { trustAuthorities } from '../process/authorities.ts';
import { createSecrets } from '../secrets.ts';
import { isAboutTls } from './doctor/finding.ts';
import { explain, UsageError } from './failure.ts';
import { closedPrefixes, mayUpload, strangersAt } from './preflight.ts';

/**
 * `npm run s3-setup` prints the missing settings of the bucket with policy and CORS rules; `-- --apply` sets them.
 * Idempotent. Exit code 0: complete, 1: incomplete, 2: unknown, or refused.
 */
async function setUp({ apply }: { apply: boolean }): Promise<void> {
  const config = loadConfig();
  trustAuthorities(config);
  const { s3, origins } = config;
  if (!s3) return say(`S3 is not configured: files are stored in ${config.dataDir}, nothing to set up.`);
  const { minio, bucketExists, close } = connectS3(s3);
  try {
    const client = await minio();
    say(`Bucket ${s3.bucket} at ${s3.endpoint}`);
    const isThere = await bucketExists().catch((error: Error) => {
      if (!error.message.startsWith('the storage answered')) throw error;
      throw new UsageError(`${error.message}: check S3_ACCESS_KEY, S3_SECRET_KEY, S3_REGION and S3_BUCKET`);
    });
    if (!isThere && apply) await client.makeBucket(s3.bucket, s3.region);
    if (!isThere) report('bucket', ['+ it is created'], apply);
    for (const setting of bucketSettings(client, { bucket: s3.bucket, origins })) {
      await settle(setting, { s3, origins, apply, isThere: isThere || apply });
    }
    if (apply) await checkClosed(await openObjectStorage(config, createSecrets([''])), closedPrefixes(config));
  } finally {
    close();
  }
}

async function settle(
  setting: BucketSetting,
  { s3, origins, apply, isThere }: { s3: S3Config; origins: Config['origins']; apply: boolean; isThere: boolean },
): Promise<void> {
  const { name, read, differences, wanted, document, write } = setting;
  try {
    const entries = isThere ? await read() : [];
    const lacking = differences(entries);
    if (lacking.length === 0) return say(`${name}: as it should be`);
    if (name === 'CORS' && entries.length === 0 && (await letsAll(s3, origins)))
      return say(`${name}: pages may send files, by a setting of the whole storage`);
    if (apply) await write(wanted(entries));
    if (apply && differences(await read()).length > 0) {
      say(`${name}: the storage accepted the setting, but did not store it`);
      process.exitCode = 1;
      return;
    }
    report(name, lacking, apply);
    if (!apply) say(JSON.stringify(document(wanted(entries)), null, 2));
  } catch (error) {
    if (!isNotImplemented(error)) throw error;
    const isSet = name === 'CORS' && (await letsAll(s3, origins));
    if (isSet) return say(`${name}: pages may send files, by a setting of the whole storage`);
    say(`${name}: ${byHand[name]([...origins])}`);
    process.exitCode = 1;
  }
}

/** Prints the differences; they fail the command unless they are applied. */
function report(name: string, differences: string[], apply: boolean): void {
  say([`${name}: ${apply ? 'set' : 'differs'}`, ...differences.map((line) => `  ${line}`)].join('\n'));
  if (!apply) process.exitCode = 1;
}

/** The responses of the storage count, not its policies. */
async function checkClosed(objects: ObjectStorage, closed: string[]): Promise<void> {
  try {
    for (const prefix of closed) {
      const files = prefix === prefixes.private ? 'private files' : 'files that wait for the scanner';
      const status = await strangersAt(prefix, objects);
      if (status === undefined) {
        say(`${files}: strangers cannot read them`);
        continue;
      }
      say(
        status < 400
          ? `${files}: STRANGERS CAN READ THEM. Remove the setting of the storage that lets everyone read ${prefix}*`
          : `${files}: unknown whether strangers can read them, because one was answered with ${status}. Try again`,
      );
      process.exitCode = 1;
    }
  } finally {
    objects.close();
  }
}

const byHand: Record<BucketSetting['name'], (origins: string[]) => string> = {
  policy: () => 'this storage has no bucket policies. By its own means, let everyone read uploads/*, and nothing else',
  CORS: (origins) =>
    `this storage has no bucket CORS rules. Let ${origins.join(', ')} PUT, with the header content-type, by its own ` +
    `means; MinIO has a variable for all of its buckets: MINIO_API_CORS_ALLOW_ORIGIN=${origins.join(',')}`,
};

/** True if pages of every origin may already send files; false if the public name of the storage is unknown here. */
async function letsAll(s3: S3Config, origins: Config['origins']): Promise<boolean> {
  const presign = presigner(s3, s3.uploadEndpoint);
  const path = `/${s3.bucket}/uploads/preflight.png`;
  const address = await presign({
    method: 'PUT',
    path,
    headers: { 'content-type': 'image/png' },
    expiresInSeconds: 60,
  });
  const answers = await Promise.all([...origins].map((origin) => mayUpload(address, origin).catch(() => false)));
  return answers.every(Boolean);
}

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const USAGE = 'Usage: npm run s3-setup [-- --apply]';

function explanationOf(error: unknown): string {
  const { code = '', name, message, syscall } = error as NodeJS.ErrnoException;
  if (hasCode(error, ['AccessDenied']))
    return `The storage refuses this: S3_ACCESS_KEY must be a key that may read and change the policy and the CORS rules of the bucket (s3:GetBucketPolicy, s3:PutBucketPolicy, s3:GetBucketCORS, s3:PutBucketCORS), for this command only. On AWS “Block public access” of the bucket must let policies in.`;
  if (name === 'AbortError' || name === 'TimeoutError')
    return 'The storage at S3_ENDPOINT does not respond in time. Check that it runs, and that this machine can reach it.';
  if (code === 'EPROTO') return 'The server at S3_ENDPOINT does not speak TLS. Check scheme and port of the address.';
  if (isAboutTls(code))
    return `The certificate of S3_ENDPOINT is not accepted: ${message}. CA_FILE must have its authority, and S3_ENDPOINT the name that it is for.`;
  if (syscall || code === 'ECONNRESET')
    return `The storage at S3_ENDPOINT cannot be reached: ${message}. Check that it runs, and that the address is right.`;
  if (name === 'S3Error') return `The storage refuses this: ${message} (${code}).`;
  return explain(error, USAGE);
}

try {
  await setUp(parseArgs({ options: { apply: { type: 'boolean', default: false } } }).values);
} catch (error) {
  process.stderr.write(`${explanationOf(error)}\n`);
  process.exitCode = 2;
}
