/*
 * `former` is the address that was replaced. `browser` is the hash of the browser that requested the change. Each
 * address is mailed a token of its own, stored only as a hash; `expiresAt` is the end of the one that is currently
 * usable.
 */

import { defineEntity, p } from '@mikro-orm/core';

export const EmailChangeSchema = defineEntity({
  name: 'EmailChange',
  tableName: 'email_changes',
  properties: {
    id: p.string().primary(),
    userId: p.string(),
    email: p.string(),
    former: p.string().nullable(),
    browser: p.string().nullable().hidden(),
    confirmHash: p.string().hidden(),
    undoHash: p.string().hidden(),
    createdAt: p.bigint('number'),
    confirmedAt: p.bigint('number').nullable(),
    expiresAt: p.bigint('number'),
  },
});

/** A change of a user's address to `email`: requested until `confirmedAt`, then in effect and reversible. */
export class EmailChange extends EmailChangeSchema.class {}

EmailChangeSchema.setClass(EmailChange);
