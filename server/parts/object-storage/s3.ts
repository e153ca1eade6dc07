import { createHash, createHmac } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import { buffer } from 'node:stream/consumers';
import { SignatureV4 } from '@smithy/signature-v4';
import { Client, S3Error } from 'minio';
import { type Config, ConfigError } from '../../config/index.ts';
import { unavailable } from '../../errors.ts';
import type { ObjectStorage } from './contract.ts';

/** The longest one exchange with the storage may take: two of them still fit into a client's time limit. */
const EXCHANGE_MS = 6000;
const CONNECTIONS = 50;
const IDLE_CONNECTION_MS = 3000;
const YEAR_SECONDS = 31_536_000;

/**
 * S3, or a storage with its protocol. Objects go through minio; addresses are signed here (it cannot bind type and
 * length).
 */
export function s3Storage(s3: NonNullable<Config['s3']>, { createBucket }: { createBucket: boolean }): ObjectStorage {
  const endpoint = new URL(s3.endpoint);
  const isSecure = endpoint.protocol === 'https:';
  const { Agent } = isSecure ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS, timeout: IDLE_CONNECTION_MS });
  const client = new Client({
    endPoint: endpoint.hostname,
    port: Number(endpoint.port) || (isSecure ? 443 : 80),
    useSSL: isSecure,
    accessKey: s3.accessKey,
    secretKey: s3.secretKey,
    // Set, so that minio does not ask for it over the network.
    region: s3.region,
    transportAgent: agent,
    transport: { request: withinTime(isSecure ? https.request : http.request) },
    retryOptions: { disableRetry: true },
  });
  const sign = presigner(s3, endpoint);
  const { bucket } = s3;

  return {
    presignPut: sign,

    async put(key, bytes, contentType) {
      const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      await exchange(() =>
        client.putObject(bucket, key, body, body.length, {
          'Content-Type': contentType,
          'Cache-Control': `public, max-age=${YEAR_SECONDS}, immutable`,
        }),
      );
    },

    find: (key, startBytes) =>
      exchange(async () => {
        try {
          const { size } = await client.statObject(bucket, key);
          if (size === 0) return { size, start: Buffer.alloc(0) };
          return { size, start: await buffer(await client.getPartialObject(bucket, key, 0, startBytes)) };
        } catch (error) {
          if (isMissing(error)) return undefined;
          throw error;
        }
      }),

    delete: (key) => exchange(() => client.removeObject(bucket, key)),

    publicUrl: (key) => `${s3.publicUrl}/${key}`,

    async prepare() {
      if (await exchange(() => client.bucketExists(bucket))) return;
      if (!createBucket)
        throw new ConfigError([`S3_BUCKET names no bucket: there is no "${bucket}" at ${s3.endpoint}`]);
      await exchange(() => client.makeBucket(bucket, s3.region));
      // Uploads are public. A storage without policies publishes its buckets in another way.
      await client.setBucketPolicy(bucket, publicReading(bucket)).catch(() => undefined);
    },

    close: () => agent.destroy(),
  };
}

/** minio itself would wait for ever. It calls `request` in this one of its two forms. */
const withinTime = (request: typeof http.request) =>
  ((options: http.RequestOptions, answered?: (response: http.IncomingMessage) => void) =>
    request({ ...options, signal: AbortSignal.timeout(EXCHANGE_MS) }, answered)) as typeof http.request;

/** AWS Signature Version 4 in the query, for the path style, which every storage understands. */
function presigner({ region, bucket, accessKey, secretKey }: NonNullable<Config['s3']>, endpoint: URL) {
  const signer = new SignatureV4({
    service: 's3',
    region,
    credentials: { accessKeyId: accessKey, secretAccessKey: secretKey },
    sha256: Sha256,
    uriEscapePath: false,
  });
  const basePath = endpoint.pathname.replace(/\/$/, '');

  return async ({ key, contentType, size, expiresInSeconds }: Parameters<ObjectStorage['presignPut']>[0]) => {
    const { path, query } = await signer.presign(
      {
        method: 'PUT',
        protocol: endpoint.protocol,
        hostname: endpoint.hostname,
        path: `${basePath}/${bucket}/${key}`,
        query: {},
        headers: {
          host: endpoint.host,
          'content-type': contentType,
          'content-length': String(size),
          'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
        },
      },
      { expiresIn: expiresInSeconds, signableHeaders: new Set(['host', 'content-type', 'content-length']) },
    );
    return `${endpoint.origin}${path}?${new URLSearchParams(query as Record<string, string>)}`;
  };
}

/** Node's own, and synchronous: WebCrypto would queue behind the password hashing. */
class Sha256 {
  readonly #hash;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    throw new Error('a digest is made once');
  }
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): string | Uint8Array {
  if (typeof data === 'string') return data;
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}

/** Retries once where the connection had died meanwhile: every exchange here may be repeated. */
async function exchange<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work().catch((error: unknown) => (isDropped(error) ? work() : Promise.reject(error)));
  } catch (error) {
    throw unavailable(isClockSkew(error) ? new Error(CLOCKS_DIFFER, { cause: error }) : error);
  }
}

const CLOCKS_DIFFER =
  'the clocks of this machine and of the storage differ by more than it accepts: it refuses presigned addresses too';

const isClockSkew = (error: unknown): boolean => error instanceof S3Error && error.code === 'RequestTimeTooSkewed';

const isDropped = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');

const isMissing = (error: unknown): boolean =>
  error instanceof S3Error && (error.code === 'NoSuchKey' || error.code === 'NotFound');

const publicReading = (bucket: string): string =>
  JSON.stringify({
    Version: '2012-10-17',
    Statement: [
      {
        Effect: 'Allow',
        Principal: { AWS: ['*'] },
        Action: ['s3:GetObject'],
        Resource: [`arn:aws:s3:::${bucket}/uploads/*`],
      },
    ],
  });
