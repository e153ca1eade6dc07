import { parseArgs } from 'node:util';
import { type Config, ConfigError, loadConfig } from '../config/index.ts';
import { sentenceOf } from '../log.ts';
import { type BucketSetting, bucketSettings, isNotImplemented } from '../parts/object-storage/bucket-settings.ts';
import { presigner } from '../parts/object-storage/s3-addresses.ts';
import { connectS3, hasCode, type S3Config } from '../parts/object-storage/s3-client.ts';
import { trustAuthorities } from '../start/authorities.ts';
import { mayUpload } from './preflight.ts';

/**
 * `npm run s3-setup` says what the bucket lacks of what the service needs of it, and prints policy and CORS rules as they have
 * to be; with `-- --apply` it sets them. May be repeated. Exit code 0: nothing is lacking (any more), 1: something is, 2: it
 * could not find out, or the storage refuses it.
 */
async function setUp({ apply }: { apply: boolean }): Promise<void> {
  const config = loadConfig();
  trustAuthorities(config);
  const { s3, origins } = config;
  if (!s3) return say(`No S3 is configured: files are in ${config.dataDir}, and there is nothing to set up.`);
  const { minio, bucketExists, close } = connectS3(s3);
  try {
    const client = await minio();
    say(`Bucket ${s3.bucket} at ${s3.endpoint}`);
    const isThere = await bucketExists();
    if (!isThere && apply) await client.makeBucket(s3.bucket, s3.region);
    if (!isThere) report('bucket', ['+ it is created'], apply);
    for (const setting of bucketSettings(client, { bucket: s3.bucket, origins })) {
      await settle(setting, { s3, origins, apply, isThere: isThere || apply });
    }
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
      say(`${name}: the storage has taken the setting, but does not keep it`);
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

/** Says what differs. That is a failure unless it is being changed. */
function report(name: string, differences: string[], apply: boolean): void {
  say([`${name}: ${apply ? 'set' : 'differs'}`, ...differences.map((line) => `  ${line}`)].join('\n'));
  if (!apply) process.exitCode = 1;
}

const byHand: Record<BucketSetting['name'], (origins: string[]) => string> = {
  policy: () =>
    'this storage has no policies of a bucket. Let everyone read uploads/*, and do nothing else, by its own means',
  CORS: (origins) =>
    `this storage has no CORS rules of a bucket. Let ${origins.join(', ')} PUT, with the header content-type, by its own ` +
    `means; MinIO has a variable for all of its buckets: MINIO_API_CORS_ALLOW_ORIGIN=${origins.join(',')}`,
};

/** Whether pages of every origin may send files as it is; not where browsers' name of the storage is unknown here. */
async function letsAll(s3: S3Config, origins: Config['origins']): Promise<boolean> {
  const presign = presigner(s3, s3.uploadEndpoint);
  const path = `/${s3.bucket}/uploads/preflight.png`;
  const address = presign({
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

function explanationOf(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (hasCode(error, ['AccessDenied']))
    return `The storage refuses this: S3_ACCESS_KEY must be a key that may read and change the policy and the CORS rules of the bucket (s3:GetBucketPolicy, s3:PutBucketPolicy, s3:GetBucketCORS, s3:PutBucketCORS), for this command only. On AWS “Block public access” of the bucket must let policies in.`;
  return sentenceOf(error);
}

const { values } = parseArgs({ options: { apply: { type: 'boolean', default: false } } });

await setUp(values).catch((error: unknown) => {
  process.stderr.write(`${explanationOf(error)}\n`);
  process.exitCode = 2;
});
