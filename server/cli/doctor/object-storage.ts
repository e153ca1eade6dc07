import { randomUUID } from 'node:crypto';
import { accessSync, constants, statfsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '../../config/index.ts';
import { type ObjectStorage, prefixes } from '../../parts/object-storage/contract.ts';
import { openObjectStorage } from '../../parts/object-storage/index.ts';
import { createSecrets } from '../../secrets.ts';
import { isLoopback } from '../../shared/loopback.ts';
import { closedPrefixes, mayUpload, strangersAt } from '../preflight.ts';
import { type Check, clockFinding, clockOf, type Finding, ok, problem, warning } from './finding.ts';

const CONTENT = 'account service';
const CONTENT_TYPE = 'image/png';
const ADDRESS_LIFE_SECONDS = 60;
/** S3's own tolerance. */
const CLOCK_TOLERANCE_MS = 15 * 60_000;

/** The free space below which uploads will soon fail. */
const FEW_BYTES = 2 ** 30;

function diskFinding({ dataDir }: Config): Finding {
  const folder = resolve(dataDir);
  try {
    accessSync(folder, constants.W_OK);
    const { bavail, bsize } = statfsSync(folder);
    const free = `${((Number(bavail) * Number(bsize)) / 2 ** 30).toFixed(1)} GiB`;
    return Number(bavail) * Number(bsize) < FEW_BYTES
      ? warning(
          `UPLOADS=disk keeps files in ${folder}, where ${free} are free`,
          'give it more space: uploads fail on a full disk',
        )
      : ok(`UPLOADS=disk keeps files in ${folder} (${free} free): back it up with the database`);
  } catch (error) {
    return problem(
      `UPLOADS=disk keeps files in ${folder}: ${(error as Error).message}`,
      'make the folder, for the user of the service',
    );
  }
}

/** The command that sets policy and CORS rules of the bucket. */
const SET_UP = '`npm run s3-setup -- --apply`';

/**
 * Tests what users do instead of reading policies: the responses of the storage and its proxies count. Stores a few
 * objects and deletes them.
 */
export const checkObjectStorage: Check = async function* (config) {
  const { s3 } = config;
  if (!s3) {
    yield config.uploads.areOnDisk ? diskFinding(config) : ok(`embedded: files in ${config.dataDir}`);
    return;
  }
  const { endpoint, uploadEndpoint, bucket } = s3;
  // URLs of S3 are signed with its own key.
  const open = (at: string) => openObjectStorage({ ...config, s3: { ...s3, uploadEndpoint: at } }, createSecrets(['']));
  const objects = await open(endpoint);
  const upload = `uploads/doctor-${randomUUID()}.png`;
  const elsewhere = `doctor-${randomUUID()}`;
  const besides = `${objects.publicUrl('')}${elsewhere}`;

  const address = await addressOf(objects, upload);
  const asked = Date.now();
  const stored = await send(address);
  const clock = clockOf(stored, asked);
  if (clock) yield clockFinding(clock, CLOCK_TOLERANCE_MS);
  if (!stored.ok) {
    yield refusalFinding(await stored.text(), stored.status, { bucket, isMade: !config.production });
    return;
  }
  try {
    yield ok(`the bucket ${bucket} at ${endpoint} accepts an upload`);

    const read = await statusOf(objects.publicUrl(upload)).catch(unreachableHere(objects.publicUrl('')));
    if (typeof read !== 'number') yield read;
    else
      yield read === 200
        ? ok('everyone can read an upload')
        : problem(
            `GET ${objects.publicUrl('uploads/…')} is answered with ${read}`,
            `let everyone s3:GetObject on uploads/* in the policy of the bucket, as ${SET_UP} does; S3_PUBLIC_URL must lead to the bucket`,
          );

    const isOpenAt = async (address: string) => (await statusOf(address).catch(() => 0)) === 200;
    const access = [
      (await statusOf(`${endpoint}/${bucket}/?list-type=2`)) === 200 && 'list the bucket',
      (await statusOf(address.replace(/\?.*/, ''), { method: 'PUT', body: CONTENT })) < 300 && 'write to it',
      (await send(await addressOf(objects, elsewhere))).ok &&
        (await isOpenAt(besides)) &&
        'read objects outside uploads/',
    ].filter((text) => text !== false);
    yield access.length === 0
      ? ok('nobody can do more than that')
      : problem(
          `everyone can ${access.join(', ')}`,
          `the policy must let everyone s3:GetObject on uploads/*, and nothing more: ${SET_UP}`,
        );

    for (const prefix of closedPrefixes(config)) yield await closedFinding(prefix, objects);

    const forBrowsers = await addressOf(await open(uploadEndpoint), upload);
    if (uploadEndpoint !== endpoint) yield await uploadEndpointFinding(forBrowsers, uploadEndpoint);
    yield* corsFindings(forBrowsers, config.origins);
  } finally {
    await Promise.all([objects.delete(upload), objects.delete(elsewhere)]).catch(() => undefined);
    objects.close();
  }
  yield (await objects.find(upload, 1)) === undefined
    ? ok('it deletes objects')
    : problem('it deletes no objects', 'give the owner of S3_ACCESS_KEY s3:DeleteObject on uploads/* and private/*');
};

const addressOf = (objects: ObjectStorage, key: string): Promise<string> =>
  objects.presignPut({ key, contentType: CONTENT_TYPE, size: CONTENT.length, expiresInSeconds: ADDRESS_LIFE_SECONDS });

const send = async (address: string): Promise<Response> =>
  fetch(address, { method: 'PUT', body: CONTENT, headers: { 'content-type': CONTENT_TYPE } });

async function statusOf(address: string, options: RequestInit = {}): Promise<number> {
  const response = await fetch(address, options);
  await response.body?.cancel();
  return response.status;
}

/** For a failed connection to a URL for browsers: their `localhost` is another machine. Rejects for any other URL. */
const unreachableHere =
  (address: string) =>
  (error: unknown): Finding => {
    const { origin, hostname } = new URL(address);
    if (!isLoopback(hostname)) throw error;
    return warning(`${origin}, which is for browsers, does not answer here`, 'try it in a browser on that machine');
  };

async function closedFinding(prefix: string, objects: ObjectStorage): Promise<Finding> {
  const files = prefix === prefixes.private ? 'private files' : 'files that wait for the scanner';
  try {
    const status = await strangersAt(prefix, objects);
    if (status === undefined) return ok(`strangers cannot read ${files}`);
    return status < 400
      ? problem(`strangers can read ${files}`, `no policy may let everyone read ${prefix}*: ${SET_UP} takes it away`)
      : warning(
          `it is unknown whether strangers can read ${files}: one was answered with ${status}`,
          'try again; the storage must answer strangers with 403',
        );
  } catch {
    return warning(
      `${files} cannot be stored`,
      `give the owner of S3_ACCESS_KEY s3:PutObject, s3:GetObject and s3:DeleteObject on ${prefix}* too`,
    );
  }
}

/** The signature covers the host name that browsers use: a proxy in front must not change the Host header. */
async function uploadEndpointFinding(address: string, endpoint: string): Promise<Finding> {
  try {
    const answer = await send(address);
    if (answer.ok) return ok(`an upload by S3_UPLOAD_ENDPOINT ${endpoint} arrives`);
    const code = codeIn(await answer.text());
    return problem(
      `an upload by S3_UPLOAD_ENDPOINT ${endpoint} is answered with ${answer.status} ${code}`.trimEnd(),
      code === 'SignatureDoesNotMatch'
        ? 'the proxy in front of the storage must pass the Host header on unchanged'
        : 'it must lead to the storage of S3_ENDPOINT',
    );
  } catch (error) {
    return unreachableHere(endpoint)(error);
  }
}

const codeIn = (body: string): string => /<Code>(\w+)<\/Code>/.exec(body)?.[1] ?? '';

/** A browser sends a file only if the storage allows PUT from the page's origin. */
async function* corsFindings(address: string, origins: ReadonlySet<string>): AsyncGenerator<Finding> {
  const refused: string[] = [];
  try {
    for (const origin of origins) if (!(await mayUpload(address, origin))) refused.push(origin);
  } catch (error) {
    yield unreachableHere(address)(error);
    return;
  }
  yield refused.length === 0
    ? ok('pages of every front end may upload files')
    : problem(
        `pages of ${refused.join(', ')} may not upload files`,
        `add a CORS rule to the bucket: these origins, PUT, the header content-type. ${SET_UP} adds it`,
      );
}

function refusalFinding(
  body: string,
  status: number,
  { bucket, isMade }: { bucket: string; isMade: boolean },
): Finding {
  const code = codeIn(body);
  const text = `an upload is answered with ${status} ${code}`;
  if (code === 'NoSuchBucket') {
    return isMade
      ? warning(`the bucket ${bucket} does not exist`, 'the next start creates it, because this is not production')
      : problem(
          `the bucket ${bucket} does not exist`,
          `create it; everyone must be able to read uploads/*: ${SET_UP} does both`,
        );
  }
  if (code === 'RequestTimeTooSkewed') return problem(text, 'synchronize the clocks with NTP (Debian: chrony)');
  if (['InvalidAccessKeyId', 'SignatureDoesNotMatch', 'AuthorizationHeaderMalformed'].includes(code)) {
    return problem(text, 'check S3_ACCESS_KEY, S3_SECRET_KEY and S3_REGION');
  }
  return problem(
    text,
    'give the owner of S3_ACCESS_KEY s3:PutObject, s3:GetObject and s3:DeleteObject on uploads/* and private/*',
  );
}
