import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { Cluster, Redis } from 'ioredis';
import { dataDirectory } from './custodian.ts';
import { findBinary } from './debian.ts';
import { freePort } from './port.ts';
import { foreignServer, type PrivateServer, startPrivateServer } from './private-server.ts';

const databases = 256;

/**
 * A private Redis with an append-only file in an empty `directory`, or the server of REDIS_URL. `settings` and
 * `appendfsync` as in redis.conf; with any `appendfsync`, acknowledged writes survive a killed process.
 */
export async function startRedis({
  appendfsync = 'everysec',
  directory,
  settings = {},
}: {
  appendfsync?: 'always' | 'everysec' | 'no';
  directory?: string;
  settings?: Record<string, string | number>;
} = {}): Promise<PrivateServer> {
  const external = process.env.REDIS_URL;
  if (external) return foreignServer(external, 'REDIS_URL');
  return startRedisServer(
    { databases, appendonly: 'yes', appendfsync, ...settings },
    { ...(directory && { directory }) },
  );
}

/**
 * A redis-server with these settings in its own redis.conf, which CONFIG REWRITE changes; or with `file`: an existing
 * configuration and further command-line arguments. `url` contains the password of `requirepass`.
 */
export async function startRedisServer(
  settings: Record<string, string | number>,
  { directory = dataDirectory('redis'), file }: { directory?: string; file?: string[] } = {},
): Promise<PrivateServer> {
  const binary = findBinary(['redis-server']);
  if (binary === undefined) throw new Error('redis-server is not installed');
  const port = await freePort();
  const { requirepass } = settings;
  const url = `redis://${requirepass ? `:${requirepass}@` : ''}127.0.0.1:${port}`;
  const own = { bind: '127.0.0.1', port, dir: directory };
  const args = file
    ? [...file, ...Object.entries(own).flatMap(([name, value]) => [`--${name}`, String(value)])]
    : [configurationIn(directory, { ...own, save: '', 'repl-diskless-sync-delay': 0, ...settings })];
  return startPrivateServer({
    name: 'Redis',
    url,
    port,
    directory,
    command: { file: binary, args, env: { LC_ALL: 'C' } },
    answers: () => answers(port),
  });
}

/** Without the password, which a test may have changed. */
const answers = async (port: number): Promise<boolean> =>
  /^(?:\+PONG|-NOAUTH)/.test(await textOf(connect(port, '127.0.0.1').end('PING\r\nQUIT\r\n')));

function configurationIn(directory: string, settings: Record<string, string | number>): string {
  const file = join(directory, 'redis.conf');
  const lines = Object.entries(settings).map(([name, value]) => `${name} ${value === '' ? '""' : value}\n`);
  writeFileSync(file, lines.join(''));
  return file;
}

/** A client that connects with its first command, to one server or, with several hosts, to a Cluster. */
export function redisClient(url: string): Redis | Cluster {
  const hosts = url.replace('redis://', '').split(',');
  const client =
    hosts.length > 1
      ? new Cluster(
          hosts.map((host) => `redis://${host}`),
          { lazyConnect: true },
        )
      : new Redis(url, { lazyConnect: true });
  // A test may stop its server; the next command reports it.
  client.on('error', () => undefined);
  return client;
}

/** The servers that together hold all keys. */
export async function mastersOf(client: Redis | Cluster): Promise<Redis[]> {
  if (!(client instanceof Cluster)) return [client];
  // Connects if not yet connected.
  await client.ping();
  return client.nodes('master');
}

export async function flush(client: Redis | Cluster): Promise<void> {
  await Promise.all((await mastersOf(client)).map((server) => server.flushdb()));
}

/**
 * The URL of an empty logical database, given to one caller across processes; database 0 has the counter, which starts
 * again at 1. A Cluster has a single database: test files that use it take turns.
 */
export async function nextDatabase(serverUrl: string): Promise<string> {
  if (serverUrl.includes(',')) return serverUrl;
  return withClient(serverUrl, async (client) => {
    const [, total = '16'] = (await client.config('GET', 'databases')) as string[];
    const usable = Number(total) - 1;
    for (let tries = 0; tries < usable; tries++) {
      const number = 1 + ((await client.incr('rig:databases-handed-out')) % usable);
      await client.select(number);
      if ((await client.dbsize()) === 0) return `${serverUrl.replace(/\/\d*$/, '')}/${number}`;
      await client.select(0);
    }
    throw new Error(`all ${usable} databases of ${serverUrl} hold data`);
  });
}

export async function withClient<T>(url: string, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: 5_000,
    commandTimeout: 2_000,
  });
  // The failed command reports it.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await use(client);
  } finally {
    client.disconnect();
  }
}
