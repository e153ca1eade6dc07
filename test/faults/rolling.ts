import type { Changes, Service } from '../rig/service.ts';
import type { Uploading } from '../uploads/storage.ts';
import { type Load, type LoadOptions, startLoad } from './load.ts';

export interface Rolling {
  load: Load;
  /** The instances that get requests at this moment. */
  serving: readonly Service[];
  /** Restarts an instance, which gets no new requests from before its SIGTERM until it is ready. */
  replace(service: Service, changes: Changes): Promise<void>;
}

/** A load on the instances of a stack as a balancer spreads it, while they are replaced one after another. */
export function rollingLoad(uploading: Uploading, options?: LoadOptions): Rolling {
  const serving = [...uploading.stack.services];
  const behindBalancer = { ...uploading, stack: { ...uploading.stack, services: serving } };
  return {
    load: startLoad(behindBalancer, options),
    serving,
    async replace(service, changes) {
      serving.splice(serving.indexOf(service), 1);
      await service.restart(changes);
      serving.push(service);
    },
  };
}
