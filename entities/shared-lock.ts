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
 * A row that is written by every transaction of one kind, each with a `holder` of its own: so they run one after the other. On
 * a cluster, whose nodes do not know each other's row locks, one of two that write it at once fails at its commit and is
 * repeated.
 */
export class SharedLock extends SharedLockSchema.class {}

SharedLockSchema.setClass(SharedLock);
