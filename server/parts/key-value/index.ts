import type { Config } from '../../config/index.ts';
import type { Log } from '../../log.ts';
import type { KeyValueStore } from './contract.ts';

/** Redis where REDIS_URL names it, else a file in DATA_DIR. Only the one that is used is loaded. */
export async function openKeyValueStore(
  config: Pick<Config, 'redisUrl' | 'redisCluster' | 'redisSentinel' | 'dataDir'>,
  log: Log,
): Promise<KeyValueStore> {
  const { redisUrl: url, redisCluster: cluster, redisSentinel: sentinel, dataDir } = config;
  if (!url) return (await import('./local.ts')).localStore(dataDir, log);
  const { redisStore } = await import('./redis.ts');
  if (!cluster) return redisStore((await import('./redis-server.ts')).connectToServer({ url, sentinel }, log));
  return redisStore((await import('./redis-cluster.ts')).connectToCluster({ url, nodes: cluster }, log));
}
