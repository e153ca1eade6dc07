import type { Config } from '../../config/index.ts';
import type { Log } from '../../log.ts';
import type { KeyValueStore } from './contract.ts';
import { traceCommands } from './redis-spans.ts';

/** Redis where REDIS_URL names one, else a file in DATA_DIR. Only the one that is used is loaded. */
export async function openKeyValueStore(
  { redisUrl, dataDir }: Pick<Config, 'redisUrl' | 'dataDir'>,
  log: Log,
): Promise<KeyValueStore> {
  if (redisUrl) {
    traceCommands();
    return (await import('./redis.ts')).redisStore(redisUrl, log);
  }
  return (await import('./local.ts')).localStore(dataDir, log);
}
