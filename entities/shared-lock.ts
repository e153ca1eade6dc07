import { defineEntity, p } from '@mikro-orm/core';

export const SharedLockSchema = defineEntity({
  name: 'SharedLock',
  tableName: 'shared_locks',
  properties: {
    name: p.string().primary(),
    holder: p.string(),
    expiresAt: p.bigint('number').nullable(),
  },
});

/**
 * A row that every transaction of one kind writes, each with its own `holder`, so that they run one after the other. A
 * cluster's nodes ignore each other's row locks: there one of two writers fails at commit and is retried. With
 * `expiresAt` it is a lease of its holder.
 */
export class SharedLock extends SharedLockSchema.class {}

SharedLockSchema.setClass(SharedLock);
