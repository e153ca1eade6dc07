import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { urlToHttpOptions } from 'node:url';
import type { Client } from 'minio';
import type { Config } from '../../config/index.ts';
import { lazy } from '../../lib/lazy.ts';
import { presigner } from './s3-addresses.ts';

export type S3Config = NonNullable<Config['s3']>;

/** The maximum time of one exchange with the storage: two of them still fit into a client's time limit. */
const EXCHANGE_MS = 6000;
/** For a copy that a request waits for: with two exchanges it still fits into a proxy's time limit. */
const COPY_MS = 30_000;
/** For a copy of a file of the largest size. */
const PATIENT_MS = 15 * 60_000;
/** For a reader that takes a second for each megabyte of such a file. */
const READER_MS = 2 * 60 * 60_000;
const CONNECTIONS = 50;
/**
 * For each longer time limit: a long exchange never holds the connection of a short one. Enough to publish two images with
 * all their variants at once.
 */
const FEW_CONNECTIONS = 20;
const IDLE_CONNECTION_MS = 3000;

/** The service's own connection to the storage, with time limits. */
interface S3Connection {
  /** minio, loaded at the first call. */
  minio(): Promise<Client>;
  /** The same for a copy that a request waits for. */
  copier(): Promise<Client>;
  /** The same for background jobs: their exchanges may take minutes. */
  patient(): Promise<Client>;
  /** The same for a job that reads a file slowly. */
  reader(): Promise<Client>;
  /** Checked without minio, because every start does it. */
  bucketExists(): Promise<boolean>;
  close(): void;
}

export function connectS3(s3: S3Config): S3Connection {
  const endpoint = new URL(s3.endpoint);
  const isSecure = endpoint.protocol === 'https:';
  const { Agent, request } = isSecure ? https : http;
  const presign = presigner(s3, s3.endpoint);
  const agents: http.Agent[] = [];
  const connect = (ms: number, maxSockets = FEW_CONNECTIONS) => {
    const agent = new Agent({ keepAlive: true, maxSockets, timeout: IDLE_CONNECTION_MS });
    agents.push(agent);
    const transport = { request: withinTime(request, ms, agent) };
    const minio = lazy(async () => {
      const { Client } = await import('minio');
      return new Client({
        endPoint: endpoint.hostname,
        port: Number(endpoint.port) || (isSecure ? 443 : 80),
        useSSL: isSecure,
        accessKey: s3.accessKey,
        secretKey: s3.secretKey,
        ...(s3.sessionToken && { sessionToken: s3.sessionToken }),
        // Set, so that minio does not request it over the network.
        region: s3.region,
        transport,
        retryOptions: { disableRetry: true },
      });
    });
    return { minio, transport };
  };
  const { minio, transport } = connect(EXCHANGE_MS, CONNECTIONS);
  return {
    minio,
    copier: connect(COPY_MS).minio,
    patient: connect(PATIENT_MS).minio,
    reader: connect(READER_MS).minio,

    async bucketExists() {
      const address = await presign({ method: 'HEAD', path: `/${s3.bucket}`, headers: {}, expiresInSeconds: 60 });
      const headRequest = transport.request({ ...urlToHttpOptions(new URL(address)), method: 'HEAD' }).end();
      const [answer] = (await once(headRequest, 'response')) as [http.IncomingMessage];
      answer.resume();
      if (answer.statusCode === 404) return false;
      if (answer.statusCode === 200) return true;
      throw new Error(`the storage answered ${answer.statusCode} to a request for its bucket`);
    },

    close() {
      for (const agent of agents) agent.destroy();
    },
  };
}

/** True if an error of minio or of the network has one of these codes. */
export const hasCode = (error: unknown, codes: readonly unknown[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(error.code);

/** Statuses that minio treats as errors without reading the body: an unread response would keep its connection. */
const UNREAD = [408, 429, 499, 500, 502, 503, 504, 520];

/** minio sets no time limit. It calls `request` only with options and a callback. */
const withinTime = (request: typeof http.request, ms: number, agent: http.Agent) =>
  ((options: http.RequestOptions, answered?: (response: http.IncomingMessage) => void) => {
    const sent = request({ ...options, agent, signal: AbortSignal.timeout(ms) }, (response) => {
      if (UNREAD.includes(response.statusCode as number)) response.resume();
      answered?.(response);
    });
    // The signal ends a request only once it has a connection.
    const queued = setTimeout(() => {
      const error = new Error(`no connection to the storage was free within ${EXCHANGE_MS} ms`);
      sent.destroy(error).emit('error', error);
    }, EXCHANGE_MS);
    sent.once('socket', () => clearTimeout(queued));
    // Node reports the end of such a request a second time, when nobody listens any more.
    return sent.on('error', () => undefined);
  }) as typeof http.request;
