import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import { join, matchesGlob, relative } from 'node:path';
import { buffer, json } from 'node:stream/consumers';
import type Koa from 'koa';
import { Client } from 'minio';
import { dataDirectory } from './custodian.ts';
import { freePort } from './port.ts';
import { multipartUploads } from './s3-multipart.ts';

/**
 * The storage's behaviour: work; answer 503 SlowDown; refuse as Cloudflare R2 refuses strangers; take a request and never answer; cut it off in the middle; do what is
 * asked and never answer.
 */
export type S3Behaviour = 'work' | 'slow-down' | 'refuse-as-r2' | 'hang' | 'reset' | 'mute';

/** An access key, as the service is given it. */
export interface AccessKey {
  S3_ACCESS_KEY: string;
  S3_SECRET_KEY: string;
}

export interface S3 {
  readonly url: string;
  readonly bucket: string;
  /** For the tested service. */
  readonly env: Readonly<AccessKey & Record<string, string>>;
  keys(): Promise<string[]>;
  /** The keys of files in parts that were not joined. */
  unfinished(): Promise<string[]>;
  read(key: string): Promise<Buffer>;
  put(key: string, bytes: Uint8Array): Promise<void>;
  remove(key: string): Promise<void>;
  /** Method and path of every signed request so far, oldest first. */
  requests(): string[];
  /** `only` for signed requests that match, as in `requests`. */
  behave(behaviour: S3Behaviour, only?: RegExp): void;
  /** From now on others may use only these keys; before, that of `env`. */
  accept(...keys: AccessKey[]): void;
  /** Refuses connections until up(). Stored objects stay. */
  down(): Promise<void>;
  up(): Promise<void>;
  stop(): Promise<void>;
}

// The package has no types: this is the used part.
interface S3rver extends Pick<Koa, 'middleware' | 'callback'> {
  run(): Promise<unknown>;
  close(): Promise<void>;
  httpServer: Server;
  store: {
    getResourcePath(bucket: string, key: string, kind: string): string;
    deleteObject(bucket: string, key: string): Promise<unknown>;
  };
}
const require = createRequire(import.meta.url);
const S3rver = require('@20minutes/s3rver') as new (options: object) => S3rver;
/** Has the keys of all storages in this process. */
const { DUMMY_ACCOUNT: account } = require('@20minutes/s3rver/lib/models/account') as {
  DUMMY_ACCOUNT: { createKeyPair(accessKey: string, secretKey: string): void };
};

const accessKey = 'S3RVER';
const secretKey = 'S3RVER';

/** For a service that requires a configured storage, in tests that store nothing. */
export const noS3 = {
  S3_ENDPOINT: 'http://127.0.0.1:9',
  S3_BUCKET: 'none',
  S3_ACCESS_KEY: accessKey,
  S3_SECRET_KEY: secretKey,
};

/** The operator's setting that lets pages of other origins upload. */
const corsFor = (origin: string) =>
  `<CORSConfiguration><CORSRule><AllowedOrigin>${origin}</AllowedOrigin><AllowedMethod>PUT</AllowedMethod>
<AllowedMethod>GET</AllowedMethod><AllowedHeader>*</AllowedHeader></CORSRule></CORSConfiguration>`;

/** In ms. S3 compares clocks; s3rver intends to, but cannot parse the date format (20261121T171500Z). */
function clockDifference(amzDate: string): number {
  const iso = amzDate.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)$/, '$1-$2-$3:$4:$5');
  return iso === '' ? 0 : Math.abs(Date.now() - Date.parse(iso));
}

interface Policy {
  Statement: { Effect: string; Principal: { AWS: string[] }; Action: string[]; Resource: string[] }[];
}

/** Whether a policy lets everyone read `bucket/key`. */
const letsEveryoneRead = ({ Statement }: Policy, path: string): boolean =>
  Statement.some(
    ({ Effect, Principal, Action, Resource }) =>
      Effect === 'Allow' &&
      Principal.AWS.includes('*') &&
      Action.includes('s3:GetObject') &&
      Resource.some((pattern) => matchesGlob(path, pattern.replace('arn:aws:s3:::', ''))),
  );

/** The end of the name of a file in which s3rver keeps an object. */
const OBJECT = '._S3rver_object';

async function filesIn(folder: string): Promise<string[]> {
  // There may be no bucket yet, and the folder of an unfinished upload goes with it.
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const found = entries.map((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesIn(path) : [path];
  });
  return (await Promise.all(found)).flat();
}

const errorOf = (code: string) => `<Error><Code>${code}</Code></Error>`;

/** A storage on 127.0.0.1 that checks signatures. Without one, everyone may read `anyoneReads`, and nothing else. */
export async function startS3({
  cors = false,
  anyoneReads = /^uploads\//,
  hasCorsRules = true,
}: {
  /** For every origin, or for one. The bucket exists already. */
  cors?: boolean | string;
  /** Keys in a bucket, or what its policy says. */
  anyoneReads?: RegExp | 'policy';
  /** Without, `cors` is a setting of the whole storage, like MinIO's, and rules of a bucket are refused. */
  hasCorsRules?: boolean;
} = {}): Promise<S3> {
  const port = await freePort();
  const directory = dataDirectory('s3');
  const bucket = `uploads-${randomBytes(4).toString('hex')}`;
  const client = new Client({
    endPoint: '127.0.0.1',
    port,
    useSSL: false,
    accessKey,
    secretKey,
    region: 'us-east-1',
  });
  const requests: string[] = [];
  let behaviour: S3Behaviour = 'work';
  let concerned = /^/;
  let policy: Policy | undefined;
  let accepted = [accessKey];
  const isPublic = (path: string) =>
    anyoneReads === 'policy'
      ? policy !== undefined && letsEveryoneRead(policy, path)
      : anyoneReads.test(path.slice(`${bucket}/`.length));
  const refuse = (ctx: Koa.Context, status: number, code: string) => {
    ctx.status = status;
    ctx.body = errorOf(code);
  };

  const multipart = multipartUploads(directory, bucket);
  /** s3rver ignores this condition of a copy. */
  const isOtherVersion = async (ctx: Koa.Context): Promise<boolean> => {
    const [wanted, source] = [ctx.get('x-amz-copy-source-if-match'), ctx.get('x-amz-copy-source')];
    if (!wanted) return false;
    const { etag } = await client.statObject(bucket, source.slice(source.indexOf(bucket) + bucket.length + 1));
    return etag !== wanted.replaceAll('"', '');
  };

  const guard: Koa.Middleware = async (ctx, next) => {
    const isSigned = Boolean(ctx.get('Authorization')) || 'X-Amz-Signature' in ctx.query;
    const isOpen = ctx.method === 'OPTIONS' || isPublic(ctx.path.slice(1));
    if (!isSigned && !(isOpen && ['GET', 'HEAD', 'OPTIONS'].includes(ctx.method))) {
      refuse(ctx, 403, 'AccessDenied');
      return;
    }
    if (clockDifference(ctx.get('X-Amz-Date')) > 15 * 60_000) {
      refuse(ctx, 403, 'RequestTimeTooSkewed');
      return;
    }
    // Faults and the choice of keys do not apply to the rig's own access.
    const isOurs = ctx.get('User-Agent').includes('rig');
    const [, usedKey = ''] = /Credential=([^/%]*)/.exec(ctx.get('Authorization') || ctx.querystring) ?? [];
    if (isSigned && !isOurs && !accepted.includes(usedKey)) {
      refuse(ctx, 403, 'InvalidAccessKeyId');
      return;
    }
    if (isSigned && !isOurs) requests.push(`${ctx.method} ${ctx.path}`);
    if (isOurs || behaviour === 'work' || !concerned.test(`${ctx.method} ${ctx.path}`)) {
      // s3rver has no policies.
      if (anyoneReads === 'policy' && 'policy' in ctx.query) {
        if (ctx.method === 'PUT') {
          policy = (await json(ctx.req)) as Policy;
          ctx.status = 204;
        } else if (policy) ctx.body = JSON.stringify(policy);
        else refuse(ctx, 404, 'NoSuchBucketPolicy');
      } else if (!hasCorsRules && 'cors' in ctx.query) {
        if (ctx.method === 'GET') refuse(ctx, 404, 'NoSuchCORSConfiguration');
        else refuse(ctx, 501, 'NotImplemented');
      } else if (await isOtherVersion(ctx)) refuse(ctx, 412, 'PreconditionFailed');
      else await multipart.middleware(ctx, next);
      return;
    }
    if (behaviour === 'slow-down') {
      refuse(ctx, 503, 'SlowDown');
      return;
    }
    if (behaviour === 'refuse-as-r2') {
      ctx.status = 400;
      ctx.body = '<Error><Code>InvalidArgument</Code><Message>Authorization</Message></Error>';
      return;
    }
    if (behaviour === 'mute') await next();
    ctx.respond = false;
    if (behaviour === 'reset')
      ctx.req.once('data', () => ctx.req.socket.destroy()).once('end', () => ctx.req.socket.destroy());
  };
  client.setAppInfo('rig', '1');

  const open = async () => {
    const configureBuckets = cors ? [{ name: bucket, configs: [corsFor(cors === true ? '*' : cors)] }] : [];
    const server = new S3rver({
      address: '127.0.0.1',
      port,
      silent: true,
      directory,
      resetOnClose: false,
      configureBuckets,
    });
    server.middleware.unshift(guard);
    const { store } = server;
    // s3rver's own also removes the folder of the last object: a second deletion fails then, and what arrives meanwhile is lost.
    store.deleteObject = (...named) => {
      const object = store.getResourcePath(...named, 'object');
      const files = [object, `${object}.md5`, store.getResourcePath(...named, 'metadata.json')];
      return Promise.all(files.map((file) => rm(file, { force: true })));
    };
    await server.run();
    return server;
  };
  let server: S3rver | undefined = await open();
  const down = async () => {
    server?.httpServer.closeAllConnections();
    await server?.close();
    server = undefined;
  };

  return {
    url: `http://127.0.0.1:${port}`,
    bucket,
    env: {
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      S3_BUCKET: bucket,
      S3_ACCESS_KEY: accessKey,
      S3_SECRET_KEY: secretKey,
    },
    // Not by a listing of s3rver: that fails if an object goes meanwhile.
    async keys() {
      const root = join(directory, bucket);
      const objects = (await filesIn(root)).filter((file) => file.endsWith(OBJECT));
      return objects.map((file) => relative(root, file).slice(0, -OBJECT.length));
    },
    unfinished: async () => (await multipart.uploads()).map(({ key }) => key),
    read: async (key) => buffer(await client.getObject(bucket, key)),
    remove: (key) => client.removeObject(bucket, key),
    async put(key, bytes) {
      await client.putObject(bucket, key, Buffer.from(bytes));
    },
    requests: () => [...requests],
    behave(next, only = /^/) {
      behaviour = next;
      concerned = only;
    },
    accept(...keys) {
      for (const key of keys) account.createKeyPair(key.S3_ACCESS_KEY, key.S3_SECRET_KEY);
      accepted = keys.map((key) => key.S3_ACCESS_KEY);
    },
    down,
    async up() {
      server ??= await open();
    },
    async stop() {
      await down();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
