import { onTestFinished } from 'vitest';
import type { Uploading } from '../contract/uploads/storage.ts';
import type { Changes, Service } from '../rig/process/service.ts';
import { type Load, type LoadOptions, startLoad } from './load.ts';

export interface Rolling {
  load: Load;
  /** The instances that get requests now. */
  serving: readonly Service[];
  /** Restarts an instance, which gets no new requests from before its SIGTERM until it is ready. */
  replace(service: Service, changes: Changes): Promise<void>;
}

/**
 * A load until the test ends, spread like a balancer's, on instances that are replaced one after another. Its users
 * pause: a machine that is too slow for them would refuse calls without any replacement.
 */
export function rollingLoad(uploading: Uploading, options?: LoadOptions): Rolling {
  const serving = [...uploading.stack.services];
  const behindBalancer = { ...uploading, stack: { ...uploading.stack, services: serving } };
  const load = startLoad(behindBalancer, { paceMs: 100, ...options });
  // After a failure, too: the test may be repeated.
  onTestFinished(() => load.finish());
  return {
    load,
    serving,
    async replace(service, changes) {
      serving.splice(serving.indexOf(service), 1);
      await service.restart(changes);
      serving.push(service);
    },
  };
}
