import { Redis } from 'ioredis';
import { temporaryDirectory } from './custodian.ts';
import { findBinary } from './debian.ts';
import { freePort } from './port.ts';
import { foreignServer, type PrivateServer, startPrivateServer } from './private-server.ts';

const databases = 256;

/**
 * A private Redis with an append-only file in a fresh directory. With REDIS_URL that server is used instead.
 * `appendfsync` as in redis.conf; whatever it is, what was answered survives a killed process. `directory` is an empty one of
 * the test's own, `settings` are further ones of redis.conf.
 */
export async function startRedis({
  appendfsync = 'everysec',
  directory = temporaryDirectory('redis'),
  settings: further = {},
}: {
  appendfsync?: 'always' | 'everysec' | 'no';
  directory?: string;
  settings?: Record<string, string | number>;
} = {}): Promise<PrivateServer> {
  const given = process.env.REDIS_URL;
  if (given) return foreignServer(given, 'REDIS_URL');
  const binary = findBinary(['redis-server']);
  if (binary === undefined) throw new Error('redis-server is not installed');
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  const own = { bind: '127.0.0.1', port, dir: directory, databases, appendonly: 'yes', appendfsync, save: '' };
  const settings = { ...own, ...further };
  return startPrivateServer({
    name: 'Redis',
    url,
    port,
    directory,
    command: {
      file: binary,
      args: Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
      env: { LC_ALL: 'C' },
    },
    answers: () => withClient(url, async (client) => (await client.ping()) === 'PONG'),
  });
}

/**
 * The address of an empty logical database, handed to one caller only, whichever process it runs in: database 0 counts.
 * After the last one it begins again at 1, with those that are empty.
 */
export async function nextDatabase(serverUrl: string): Promise<string> {
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

async function withClient<T>(url: string, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null, connectTimeout: 5_000 });
  // What fails is told by the command that failed.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await use(client);
  } finally {
    client.disconnect();
  }
}
