import type { Config } from '../../config/index.ts';
import type { Log } from '../../log.ts';
import type { KeyValueStore } from './contract.ts';
import { localStore } from './local.ts';
import { redisStore } from './redis.ts';

/** Redis where REDIS_URL names one, else a file in DATA_DIR. */
export const openKeyValueStore = (config: Pick<Config, 'redisUrl' | 'dataDir'>, log: Log): KeyValueStore =>
  config.redisUrl ? redisStore(config.redisUrl, log) : localStore(config.dataDir, log);
