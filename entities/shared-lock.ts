import { defineEntity, p } from '@mikro-orm/core';

export const SharedLockSchema = defineEntity({
  name: 'SharedLock',
  tableName: 'shared_locks',
  properties: {
    name: p.string().primary(),
    holder: p.string(),
  },
});

/**
 * A row that every transaction of one kind writes, each with its own `holder`, so that they run one after the other. A
 * cluster's nodes ignore each other's row locks: there one of two writers fails at commit and is retried.
 */
export class SharedLock extends SharedLockSchema.class {}

SharedLockSchema.setClass(SharedLock);
