import { createHash, createHmac, createSecretKey } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { buffer } from 'node:stream/consumers';
import { urlToHttpOptions } from 'node:url';
import { SignatureV4 } from '@smithy/signature-v4';
import { type Config, ConfigError } from '../../config/index.ts';
import { unavailable } from '../../errors.ts';
import { lazy } from '../../lazy.ts';
import { inSpan } from '../../telemetry/traces.ts';
import type { ObjectStorage } from './contract.ts';

/** The longest one exchange with the storage may take: two of them still fit into a client's time limit. */
const EXCHANGE_MS = 6000;
const CONNECTIONS = 50;
const IDLE_CONNECTION_MS = 3000;
const YEAR_SECONDS = 31_536_000;

/**
 * S3, or a storage with its protocol. Objects go through minio, which is loaded with the first of them; addresses are signed
 * here (it cannot bind type and length).
 */
export function s3Storage(s3: NonNullable<Config['s3']>, { createBucket }: { createBucket: boolean }): ObjectStorage {
  const endpoint = new URL(s3.endpoint);
  const isSecure = endpoint.protocol === 'https:';
  const { Agent } = isSecure ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS, timeout: IDLE_CONNECTION_MS });
  const request = withinTime(isSecure ? https.request : http.request);
  const client = lazy(async () => {
    const { Client } = await import('minio');
    return new Client({
      endPoint: endpoint.hostname,
      port: Number(endpoint.port) || (isSecure ? 443 : 80),
      useSSL: isSecure,
      accessKey: s3.accessKey,
      secretKey: s3.secretKey,
      // Set, so that minio does not ask for it over the network.
      region: s3.region,
      transportAgent: agent,
      transport: { request },
      retryOptions: { disableRetry: true },
    });
  });
  const presign = presigner(s3, endpoint);
  const { bucket } = s3;

  /** Asked of the storage without minio: every start does. */
  const bucketExists = async () => {
    const address = await presign({ method: 'HEAD', path: `/${bucket}`, headers: {}, expiresInSeconds: 60 });
    const asked = request({ ...urlToHttpOptions(new URL(address)), method: 'HEAD', agent }).end();
    const [answer] = (await once(asked, 'response')) as [http.IncomingMessage];
    answer.resume();
    if (answer.statusCode === 404) return false;
    if (answer.statusCode === 200) return true;
    throw new Error(`the storage answered ${answer.statusCode} to a request for its bucket`);
  };

  return {
    presignPut: ({ key, contentType, size, expiresInSeconds }) =>
      presign({
        method: 'PUT',
        path: `/${bucket}/${key}`,
        headers: { 'content-type': contentType, 'content-length': String(size) },
        expiresInSeconds,
      }),

    async put(key, bytes, contentType) {
      const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      await exchange('PutObject', async () =>
        (await client()).putObject(bucket, key, body, body.length, {
          'Content-Type': contentType,
          'Cache-Control': `public, max-age=${YEAR_SECONDS}, immutable`,
        }),
      );
    },

    find: (key, startBytes) =>
      exchange('GetObject', async () => {
        try {
          const { size } = await (await client()).statObject(bucket, key);
          if (size === 0) return { size, start: Buffer.alloc(0) };
          return { size, start: await buffer(await (await client()).getPartialObject(bucket, key, 0, startBytes)) };
        } catch (error) {
          if (isMissing(error)) return undefined;
          throw error;
        }
      }),

    delete: (key) => exchange('DeleteObject', async () => (await client()).removeObject(bucket, key)),

    publicUrl: (key) => `${s3.publicUrl}/${key}`,

    async prepare() {
      if (await exchange('HeadBucket', bucketExists)) return;
      if (!createBucket)
        throw new ConfigError([`S3_BUCKET names no bucket: there is no "${bucket}" at ${s3.endpoint}`]);
      const minio = await client();
      await exchange('CreateBucket', () => minio.makeBucket(bucket, s3.region));
      // Uploads are public. A storage without policies publishes its buckets in another way.
      await minio.setBucketPolicy(bucket, publicReading(bucket)).catch(() => undefined);
    },

    close: () => agent.destroy(),
  };
}

/** minio itself would wait for ever. `request` is called in this one of its forms only. */
const withinTime = (request: typeof http.request) =>
  ((options: http.RequestOptions, answered?: (response: http.IncomingMessage) => void) =>
    request({ ...options, signal: AbortSignal.timeout(EXCHANGE_MS) }, answered)) as typeof http.request;

interface PresignedRequest {
  method: string;
  path: string;
  /** Those that the address binds, in lower case. */
  headers: Record<string, string>;
  expiresInSeconds: number;
}

/** AWS Signature Version 4 in the query, for the path style, which every storage understands. */
function presigner({ region, accessKey, secretKey }: NonNullable<Config['s3']>, endpoint: URL) {
  const signer = new SignatureV4({
    service: 's3',
    region,
    credentials: { accessKeyId: accessKey, secretAccessKey: secretKey },
    sha256: Sha256,
    uriEscapePath: false,
  });
  const basePath = endpoint.pathname.replace(/\/$/, '');

  return async ({ method, path: resource, headers, expiresInSeconds }: PresignedRequest) => {
    const { path, query } = await signer.presign(
      {
        method,
        protocol: endpoint.protocol,
        hostname: endpoint.hostname,
        path: basePath + resource,
        query: {},
        headers: { host: endpoint.host, ...headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' },
      },
      { expiresIn: expiresInSeconds, signableHeaders: new Set(['host', ...Object.keys(headers)]) },
    );
    return `${endpoint.origin}${path}?${new URLSearchParams(query as Record<string, string>)}`;
  };
}

/** Node's own, and synchronous: WebCrypto would queue behind the password hashing. */
class Sha256 {
  readonly #hash;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', keyOf(secret));
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

/** From bytes a key object: Node takes three times as long to make an HMAC from the bytes themselves. */
function keyOf(secret: string | ArrayBuffer | ArrayBufferView) {
  const bytes = bytesOf(secret);
  return typeof bytes === 'string' ? bytes : createSecretKey(bytes);
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): string | Uint8Array {
  if (typeof data === 'string') return data;
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}

/** Retries once where the connection had died meanwhile: every exchange here may be repeated. */
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

const hasCode = (error: unknown, codes: readonly unknown[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(error.code);

const isClockSkew = (error: unknown) => hasCode(error, ['RequestTimeTooSkewed']);
const isDropped = (error: unknown) => hasCode(error, ['ECONNRESET', 'EPIPE']);
const isMissing = (error: unknown) => hasCode(error, ['NoSuchKey', 'NotFound']);

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
