import { createHash, createHmac, createSecretKey } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { urlToHttpOptions } from 'node:url';
import { SignatureV4 } from '@smithy/signature-v4';
import type { Client } from 'minio';
import type { Config } from '../../config/index.ts';
import { lazy } from '../../lazy.ts';

export type S3Config = NonNullable<Config['s3']>;

/** The longest one exchange with the storage may take: two of them still fit into a client's time limit. */
const EXCHANGE_MS = 6000;
const CONNECTIONS = 50;
const IDLE_CONNECTION_MS = 3000;

/** How the service itself talks to the storage, with time limits. */
export interface S3Connection {
  /** minio, which is loaded with the first call. */
  minio(): Promise<Client>;
  /** Asked of the storage without minio: every start does. */
  bucketExists(): Promise<boolean>;
  close(): void;
}

export function connectS3(s3: S3Config): S3Connection {
  const endpoint = new URL(s3.endpoint);
  const isSecure = endpoint.protocol === 'https:';
  const { Agent } = isSecure ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS, timeout: IDLE_CONNECTION_MS });
  const request = withinTime(isSecure ? https.request : http.request);
  const presign = presigner(s3, s3.endpoint);
  return {
    minio: lazy(async () => {
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
    }),

    async bucketExists() {
      const address = await presign({ method: 'HEAD', path: `/${s3.bucket}`, headers: {}, expiresInSeconds: 60 });
      const asked = request({ ...urlToHttpOptions(new URL(address)), method: 'HEAD', agent }).end();
      const [answer] = (await once(asked, 'response')) as [http.IncomingMessage];
      answer.resume();
      if (answer.statusCode === 404) return false;
      if (answer.statusCode === 200) return true;
      throw new Error(`the storage answered ${answer.statusCode} to a request for its bucket`);
    },

    close: () => agent.destroy(),
  };
}

/** Whether an error of minio or of the network has one of these codes. */
export const hasCode = (error: unknown, codes: readonly unknown[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(error.code);

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

/**
 * AWS Signature Version 4 in the query, for the path style, which every storage understands. minio cannot bind type and
 * length. An address is good under the name in `endpoint` only: the signature holds the Host header.
 */
export function presigner({ region, accessKey, secretKey }: S3Config, endpoint: string) {
  const { protocol, hostname, host, origin } = new URL(endpoint);
  const signer = new SignatureV4({
    service: 's3',
    region,
    credentials: { accessKeyId: accessKey, secretAccessKey: secretKey },
    sha256: Sha256,
    uriEscapePath: false,
  });

  return async ({ method, path: resource, headers, expiresInSeconds }: PresignedRequest) => {
    const { path, query } = await signer.presign(
      {
        method,
        protocol,
        hostname,
        path: resource,
        query: {},
        headers: { host, ...headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' },
      },
      { expiresIn: expiresInSeconds, signableHeaders: new Set(['host', ...Object.keys(headers)]) },
    );
    return `${origin}${path}?${new URLSearchParams(query as Record<string, string>)}`;
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
