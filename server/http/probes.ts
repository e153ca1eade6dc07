import Router from '@koa/router';
import type { Database } from '../parts/database/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import { isRefused } from '../parts/refusal.ts';

interface Parts {
  database: Database;
  store: KeyValueStore;
  stopping: AbortSignal;
}

/**
 * Probes for operators and load balancers. /livez: the process runs, and a restart would not help. /readyz: the process
 * can take requests, because the parts that they need answer. 503 says that the process is stopping, or which part does
 * not answer: `unreachable` may recover by itself, `refused` needs other credentials or rights.
 */
export function probes({ database, store, stopping }: Parts): Router {
  const state = (part: { ping(): Promise<void> }) =>
    part.ping().then(
      () => 'ok',
      (error: unknown) => (isRefused(error) ? 'refused' : 'unreachable'),
    );

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
      const [databaseState, storeState] = await Promise.all([state(database), state(store)]);
      const isReady = databaseState === 'ok' && storeState === 'ok';
      ctx.status = isReady ? 200 : 503;
      // A balancer asks twice a second: a line for each would hide the others.
      if (isReady) ctx.state['logLevel'] = 'debug';
      ctx.body = { status: isReady ? 'ok' : 'error', database: databaseState, keyValueStore: storeState };
    });
}
