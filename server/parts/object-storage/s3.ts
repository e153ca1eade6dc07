import type { IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type Config, ConfigError } from '../../config/index.ts';
import { unavailable } from '../../errors.ts';
import { ignored } from '../../telemetry/background.ts';
import { inSpan } from '../../telemetry/traces.ts';
import { bucketSettings } from './bucket-settings.ts';
import { attachmentOf, cacheControlOf, type ObjectStorage, visibilityOf } from './contract.ts';
import { presigner } from './s3-addresses.ts';
import { connectS3, hasCode, type S3Config } from './s3-client.ts';
import { s3Parts } from './s3-parts.ts';

/** S3 or a compatible storage. Outside production a missing bucket is created. */
export function s3Storage(
  s3: S3Config,
  { production, origins }: Pick<Config, 'production' | 'origins'>,
): ObjectStorage {
  const { bucket } = s3;
  const { minio, copier, patient, reader, bucketExists, close } = connectS3(s3);
  const presign = presigner(s3, s3.uploadEndpoint);

  return {
    ...s3Parts({ bucket, minio, presign, exchange }),

    presignPut: ({ key, contentType, size, expiresInSeconds }) =>
      presign({
        method: 'PUT',
        path: `/${bucket}/${key}`,
        headers: { 'content-type': contentType, 'content-length': String(size) },
        expiresInSeconds,
      }),

    presignGet: ({ key, download, expiresInSeconds }) =>
      presign({
        method: 'GET',
        path: `/${bucket}/${key}`,
        headers: {},
        query: {
          'response-cache-control': cacheControlOf(key),
          ...(download !== undefined && { 'response-content-disposition': attachmentOf(download) }),
        },
        expiresInSeconds,
      }),

    copy: (from, to, contentType, transfer) =>
      exchange('CopyObject', async () => {
        const { CopyDestinationOptions, CopySourceOptions } = await import('minio');
        const headers = { 'Content-Type': contentType, 'Cache-Control': cacheControlOf(to) };
        const target = { Bucket: bucket, Object: to, MetadataDirective: 'REPLACE' as const, Headers: headers };
        try {
          const match = transfer?.version === undefined ? {} : { MatchETag: transfer.version };
          const source = new CopySourceOptions({ Bucket: bucket, Object: from, ...match });
          const client = await (transfer ? patient() : copier());
          await client.copyObject(source, new CopyDestinationOptions(target));
          return true;
        } catch (error) {
          if (isMissing(error) || hasCode(error, ['PreconditionFailed'])) return false;
          throw error;
        }
      }),

    open: (key) =>
      exchange('GetObject', async () => {
        try {
          // A stream of Node's client, with the headers of the answer.
          const bytes = (await (await reader()).getObject(bucket, key)) as IncomingMessage;
          const { 'content-length': size, etag } = bytes.headers;
          return { size: Number(size), bytes, version: etag?.replaceAll('"', '') };
        } catch (error) {
          if (isMissing(error)) return undefined;
          throw error;
        }
      }),

    async put(key, bytes, contentType) {
      const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      await exchange('PutObject', async () =>
        (await minio()).putObject(bucket, key, body, body.length, {
          'Content-Type': contentType,
          'Cache-Control': cacheControlOf(key),
        }),
      );
    },

    find: (key, startBytes) =>
      exchange('GetObject', async () => {
        try {
          const client = await minio();
          const { size, etag } = await client.statObject(bucket, key);
          const version = etag || undefined;
          if (size === 0) return { size, start: Buffer.alloc(0), version };
          return { size, start: await buffer(await client.getPartialObject(bucket, key, 0, startBytes)), version };
        } catch (error) {
          if (isMissing(error)) return undefined;
          throw error;
        }
      }),

    delete: (key) => exchange('DeleteObject', async () => (await minio()).removeObject(bucket, key)),

    publicUrl: (key) => (visibilityOf(key) === 'private' ? '' : `${s3.publicUrl}/${key}`),

    async prepare() {
      if (await exchange('HeadBucket', bucketExists)) return;
      if (production) throw new ConfigError([`S3_BUCKET names no bucket: there is no "${bucket}" at ${s3.endpoint}`]);
      const client = await minio();
      await exchange('CreateBucket', () => client.makeBucket(bucket, s3.region));
      for (const { wanted, write } of bucketSettings(client, { bucket, origins }))
        await write(wanted([])).catch(ignored('set_up_bucket'));
    },

    close,
  };
}

/** Retries once after a dead connection: every exchange here is idempotent. */
async function exchange<T>(operation: string, work: () => Promise<T>): Promise<T> {
  const attempt = () => inSpan(`S3 ${operation}`, { kind: 'client', attributes: attributesOf(operation) }, work);
  try {
    return await attempt().catch((error: unknown) => (isDropped(error) ? attempt() : Promise.reject(error)));
  } catch (error) {
    throw unavailable(isClockSkew(error) ? new Error(CLOCKS_DIFFER, { cause: error }) : error);
  }
}

const attributesOf = (operation: string) => ({ 'rpc.system': 'aws-api', 'rpc.method': `S3/${operation}` });

const CLOCKS_DIFFER =
  'the clocks of this machine and of the storage differ by more than it accepts: it refuses presigned addresses too';

const isClockSkew = (error: unknown) => hasCode(error, ['RequestTimeTooSkewed']);
const isDropped = (error: unknown) => hasCode(error, ['ECONNRESET', 'EPIPE']);
const isMissing = (error: unknown) => hasCode(error, ['NoSuchKey', 'NotFound']);
