/*
 * After the user's own row is deleted, `begunAt` is the time of that, `email` the address that it had, and `dueAt` the
 * lease of the process that deletes the remaining data, this row last.
 */

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
 * A user to be removed from `dueAt` on. The row is inserted with the request for deletion, and deleted when the account
 * is restored.
 */
export class Removal extends RemovalSchema.class {}

RemovalSchema.setClass(Removal);
