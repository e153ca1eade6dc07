import type { Config } from '../../config/index.ts';
import type { Log } from '../../telemetry/log.ts';
import type { KeyValueStore, TextStore } from './contract.ts';
import { withNamedValues } from './named-values.ts';

/** Redis if REDIS_URL is set, else a file in DATA_DIR. Loads only the one in use. */
export const openKeyValueStore = async (config: StoreConfig, log: Log): Promise<KeyValueStore> =>
  withNamedValues(await openTextStore(config, log));

type StoreConfig = Pick<Config, 'redisUrl' | 'redisCluster' | 'redisSentinel' | 'dataDir'>;

/** The same with plain text values, without the check of their key. */
export async function openTextStore(config: StoreConfig, log: Log): Promise<TextStore> {
  const { redisUrl: url, redisCluster: cluster, redisSentinel: sentinel, dataDir } = config;
  if (!url) return (await import('./local.ts')).localStore(dataDir, log);
  const { redisStore } = await import('./redis.ts');
  if (!cluster) return redisStore((await import('./redis-server.ts')).connectToServer({ url, sentinel }, log));
  return redisStore((await import('./redis-cluster.ts')).connectToCluster({ url, nodes: cluster }, log));
}
