import { defineEntity, p } from '@mikro-orm/core';

export const EmailChangeSchema = defineEntity({
  name: 'EmailChange',
  tableName: 'email_changes',
  properties: {
    id: p.string().primary(),
    userId: p.string(),
    email: p.string(),
    former: p.string().nullable(),
    confirmHash: p.string().hidden(),
    undoHash: p.string().hidden(),
    createdAt: p.bigint('number'),
    confirmedAt: p.bigint('number').nullable(),
    expiresAt: p.bigint('number'),
  },
});

/**
 * A change of a user's address to `email`: asked for, until `confirmedAt`; then made, and to be undone. `former` is the
 * address that it replaced. Two tokens belong to it, one mailed to each address and stored only as its hash; `expiresAt` is
 * the end of the one that can be used now.
 */
export class EmailChange extends EmailChangeSchema.class {}

EmailChangeSchema.setClass(EmailChange);
