import { randomUUID } from 'node:crypto';
import { openObjectStorage } from '../../parts/object-storage/index.ts';
import { createSecrets } from '../../secrets.ts';
import { type Check, clockFinding, clockOf, type Finding, ok, problem, warning } from './finding.ts';

const CONTENT = 'account service';
const CONTENT_TYPE = 'image/png';
const ADDRESS_LIFE_SECONDS = 60;
/** S3's own. */
const CLOCK_TOLERANCE_MS = 15 * 60_000;

/**
 * By doing what users do, not by reading policies: what counts is what the storage and whatever is in front of it answer. Two
 * objects are stored for that, and deleted.
 */
export const checkObjectStorage: Check = async function* (config) {
  if (!config.s3) {
    yield ok(`embedded: files in ${config.dataDir}`);
    return;
  }
  const { endpoint, bucket } = config.s3;
  // Addresses in S3 are signed with its own key.
  const objects = await openObjectStorage(config, createSecrets(['']));
  const upload = `uploads/doctor-${randomUUID()}.png`;
  const elsewhere = `doctor-${randomUUID()}`;
  const addressOf = (key: string) =>
    objects.presignPut({
      key,
      contentType: CONTENT_TYPE,
      size: CONTENT.length,
      expiresInSeconds: ADDRESS_LIFE_SECONDS,
    });
  const send = async (address: string) =>
    fetch(address, { method: 'PUT', body: CONTENT, headers: { 'content-type': CONTENT_TYPE } });
  const statusOf = async (address: string, options: RequestInit = {}) => {
    const response = await fetch(address, options);
    await response.body?.cancel();
    return response.status;
  };

  const address = await addressOf(upload);
  const asked = Date.now();
  const stored = await send(address);
  const clock = clockOf(stored, asked);
  if (clock) yield clockFinding(clock, CLOCK_TOLERANCE_MS);
  if (!stored.ok) {
    yield refusalFinding(await stored.text(), stored.status, { bucket, isMade: !config.production });
    return;
  }
  try {
    yield ok(`the bucket ${bucket} at ${endpoint} takes an upload`);

    const read = await statusOf(objects.publicUrl(upload));
    yield read === 200
      ? ok('everyone can read an upload')
      : problem(
          `GET ${objects.publicUrl('uploads/…')} is answered with ${read}`,
          'let everyone s3:GetObject on uploads/* in the policy of the bucket; S3_PUBLIC_URL must lead to the bucket',
        );

    const open = [
      (await statusOf(`${endpoint}/${bucket}/?list-type=2`)) === 200 && 'list the bucket',
      (await statusOf(address.replace(/\?.*/, ''), { method: 'PUT', body: CONTENT })) < 300 && 'write to it',
      (await send(await addressOf(elsewhere))).ok &&
        (await statusOf(objects.publicUrl(elsewhere))) === 200 &&
        'read what is not in uploads/',
    ].filter((access) => access !== false);
    yield open.length === 0
      ? ok('nobody else can do more')
      : problem(
          `everyone can ${open.join(', ')}`,
          'the policy must let everyone s3:GetObject on uploads/*, and nothing more',
        );

    yield* corsFindings(address, config.origins);
  } finally {
    await Promise.all([objects.delete(upload), objects.delete(elsewhere)]).catch(() => undefined);
    objects.close();
  }
  yield (await objects.find(upload, 1)) === undefined
    ? ok('it deletes objects')
    : problem('it deletes no objects', 'give the owner of S3_ACCESS_KEY s3:DeleteObject on uploads/*');
};

/** A browser sends a file only where the storage lets the page's origin PUT. */
async function* corsFindings(address: string, origins: ReadonlySet<string>): AsyncGenerator<Finding> {
  const refused: string[] = [];
  for (const origin of origins) {
    const { headers, body } = await fetch(address, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'PUT',
        'access-control-request-headers': 'content-type',
      },
    });
    await body?.cancel();
    const lets = (name: string, wanted: string) => {
      const allowed = headers.get(name)?.toLowerCase().split(/,\s*/) ?? [];
      return allowed.includes('*') || allowed.includes(wanted);
    };
    const isAllowed =
      lets('access-control-allow-origin', origin) &&
      lets('access-control-allow-methods', 'put') &&
      lets('access-control-allow-headers', 'content-type');
    if (!isAllowed) refused.push(origin);
  }
  yield refused.length === 0
    ? ok('pages of every front end may send files')
    : problem(
        `pages of ${refused.join(', ')} may not send files`,
        'add a CORS rule to the bucket: these origins, PUT, the header content-type',
      );
}

function refusalFinding(
  body: string,
  status: number,
  { bucket, isMade }: { bucket: string; isMade: boolean },
): Finding {
  const code = /<Code>(\w+)<\/Code>/.exec(body)?.[1] ?? '';
  const text = `an upload is answered with ${status} ${code}`;
  if (code === 'NoSuchBucket') {
    return isMade
      ? warning(`there is no bucket ${bucket}`, 'the next start makes it, as this is not production')
      : problem(`there is no bucket ${bucket}`, 'create it; everyone must be able to read uploads/*');
  }
  if (code === 'RequestTimeTooSkewed') return problem(text, 'synchronize the clocks with NTP (Debian: chrony)');
  if (['InvalidAccessKeyId', 'SignatureDoesNotMatch', 'AuthorizationHeaderMalformed'].includes(code)) {
    return problem(text, 'check S3_ACCESS_KEY, S3_SECRET_KEY and S3_REGION');
  }
  return problem(text, 'give the owner of S3_ACCESS_KEY s3:PutObject, s3:GetObject and s3:DeleteObject on uploads/*');
}
