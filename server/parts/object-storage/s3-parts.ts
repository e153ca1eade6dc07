/*
 * S3's multipart uploads (docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html). The storage lists the parts that
 * arrived, so pages need not read its answers: no CORS rule has to expose ETag.
 */

import { text } from 'node:stream/consumers';
import type { Client } from 'minio';
import { cacheControlOf, type PartStorage } from './contract.ts';
import type { presigner } from './s3-addresses.ts';
import { hasCode } from './s3-client.ts';

interface Parts {
  bucket: string;
  minio(): Promise<Client>;
  presign: ReturnType<typeof presigner>;
  exchange<T>(operation: string, work: () => Promise<T>): Promise<T>;
}

export function s3Parts({ bucket, minio, presign, exchange }: Parts): PartStorage {
  /** The elements of a list. It has up to 1000: more than a file has parts. */
  const list = async (element: string, request: { objectName?: string; query: string }) => {
    const xml = await text(await (await minio()).makeRequestAsync({ method: 'GET', bucketName: bucket, ...request }));
    return elementsOf(xml, element);
  };

  return {
    startParts: (key, contentType) =>
      exchange('CreateMultipartUpload', async () =>
        (await minio()).initiateNewMultipartUpload(bucket, key, {
          'Content-Type': contentType,
          'Cache-Control': cacheControlOf(key),
        }),
      ),

    presignPart: ({ key, id, part, size, expiresInSeconds }) =>
      presign({
        method: 'PUT',
        path: `/${bucket}/${key}`,
        headers: { 'content-length': String(size) },
        query: { partNumber: String(part), uploadId: id },
        expiresInSeconds,
      }),

    storedParts: ({ key, id }) =>
      exchange('ListParts', () =>
        unless(['NoSuchUpload'], async () => {
          const parts = await list('Part', { objectName: key, query: `uploadId=${encodeURIComponent(id)}` });
          return parts.map((read) => ({
            part: Number(read('PartNumber')),
            size: Number(read('Size')),
            version: read('ETag').replace(/"|&quot;|&#34;/g, ''),
          }));
        }),
      ),

    joinParts: ({ key, id }, parts) =>
      exchange('CompleteMultipartUpload', async () => {
        const listed = parts.map(({ part, version }) => ({ part, etag: version }));
        const client = await minio();
        const join = () => client.completeMultipartUpload(bucket, key, id, listed);
        return (await unless(['NoSuchUpload', 'InvalidPart'], join)) !== undefined;
      }),

    deleteParts: (key) =>
      exchange('AbortMultipartUpload', async () => {
        const client = await minio();
        const uploads = await list('Upload', { query: `uploads&prefix=${encodeURIComponent(key)}` });
        const ids = uploads.flatMap((read) => (read('Key') === key ? encodeURIComponent(read('UploadId')) : []));
        for (const id of ids) await unless(['NoSuchUpload'], () => client.abortMultipartUpload(bucket, key, id));
      }),
  };
}

const elementsOf = (xml: string, element: string) =>
  [...xml.matchAll(new RegExp(`<${element}>(.*?)</${element}>`, 'gs'))].map(
    ([, content = '']) =>
      (tag: string) =>
        new RegExp(`<${tag}>([^<]*)</${tag}>`).exec(content)?.[1] ?? '',
  );

/** Undefined after an error with one of these codes. */
const unless = <T>(codes: readonly string[], work: () => Promise<T>): Promise<T | undefined> =>
  work().catch((error: unknown) => {
    if (hasCode(error, codes)) return undefined;
    throw error;
  });
