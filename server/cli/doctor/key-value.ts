import { type Check, ok } from './finding.ts';
import { clusterFindings } from './redis-cluster.ts';
import { sentinelFindings } from './redis-sentinel.ts';
import { serverFindings, withServer } from './redis-server.ts';

export const checkKeyValueStore: Check = async function* ({ redisUrl: url, redisCluster, redisSentinel, dataDir }) {
  if (!url) yield ok(`embedded: a file in ${dataDir}`);
  else if (redisCluster) yield* clusterFindings(url, redisCluster);
  else if (redisSentinel) yield* sentinelFindings(url, redisSentinel);
  else yield* withServer({ url, variable: 'REDIS_URL' }, serverFindings);
};
