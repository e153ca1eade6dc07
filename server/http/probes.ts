/*
 * /livez checks no dependency: a restart would not repair one. /readyz names the failed dependency: `unreachable` may
 * recover by itself, `refused` needs other credentials or rights. A key-value store that is `read-only` gives 200:
 * sessions still work, and every instance shares that store.
 */

import Router from '@koa/router';
import type { Database } from '../parts/database/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import { isReadOnly, isRefused, isReplica } from '../parts/refusal.ts';

/** The paths that load balancers and supervisors request, several times a second. */
export const probePaths: readonly string[] = ['/livez', '/readyz'];

interface Parts {
  database: Database;
  store: KeyValueStore;
  stopping: AbortSignal;
}

const WRITE_TEST = 'probe:write';

/**
 * Health probes. /livez: the process runs. /readyz: the dependencies of requests respond; 503 while stopping or when
 * one does not.
 */
export function probes({ database, store, stopping }: Parts): Router {
  const failure = (error: unknown) => (isRefused(error) ? 'refused' : 'unreachable');
  const stateOfDatabase = () => database.ping().then(() => 'ok', failure);
  const writeTest = () =>
    store.set(WRITE_TEST, {}, { ttlMs: 1000 }).then(
      () => 'ok',
      (error: unknown) => {
        if (isReadOnly(error)) return 'read-only';
        if (isRefused(error) || isReplica(error)) return failure(error);
        // A failure of this key only, such as one master of a Redis Cluster.
        return 'ok';
      },
    );
  // Redis refuses PING too while it cannot write to its disk.
  const stateOfStore = () =>
    store.ping().then(writeTest, (error: unknown) => (isReadOnly(error) ? 'read-only' : failure(error)));

  return new Router()
    .get('/livez', (ctx) => {
      ctx.state['route'] = ctx.path;
      ctx.state['logLevel'] = 'debug';
      ctx.body = { status: 'ok' };
    })
    .get('/readyz', async (ctx) => {
      ctx.state['route'] = ctx.path;
      if (stopping.aborted) {
        ctx.status = 503;
        ctx.body = { status: 'stopping' };
        return;
      }
      const [databaseState, storeState] = await Promise.all([stateOfDatabase(), stateOfStore()]);
      const isReady = databaseState === 'ok' && (storeState === 'ok' || storeState === 'read-only');
      ctx.status = isReady ? 200 : 503;
      // A balancer asks twice a second: a line for each request would hide the others.
      if (isReady) ctx.state['logLevel'] = 'debug';
      ctx.body = { status: isReady ? 'ok' : 'error', database: databaseState, keyValueStore: storeState };
    });
}
