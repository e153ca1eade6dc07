import { defineEntity, p } from '@mikro-orm/core';

export const RemovalSchema = defineEntity({
  name: 'Removal',
  tableName: 'removals',
  properties: {
    userId: p.string().primary(),
    email: p.string().nullable(),
    begunAt: p.bigint('number').nullable(),
    dueAt: p.bigint('number'),
  },
});

/**
 * A user who is to be removed, from `dueAt` on. The row is written in the transaction that asks for it, and deleted by the
 * one that restores the account. Once the user's own row is gone, `begunAt` is when, `email` the address that it had, and
 * `dueAt` the lease of the process that deletes what is left, with this row last.
 */
export class Removal extends RemovalSchema.class {}

RemovalSchema.setClass(Removal);
