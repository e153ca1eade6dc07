import { defineEntity, p } from '@mikro-orm/core';

export const InvitationSchema = defineEntity({
  name: 'Invitation',
  tableName: 'invitations',
  properties: {
    id: p.string().primary(),
    email: p.string(),
    tokenHash: p.string().hidden(),
    invitedBy: p.string().nullable(),
    createdAt: p.bigint('number'),
    expiresAt: p.bigint('number'),
  },
});

/**
 * An invitation of an address to create an account, at most one for each: its row is deleted when it is used, revoked or
 * replaced. `invitedBy` is the id of an administrator, with whom the row is removed; null for one by the operator. `id` is
 * a UUIDv7, so that ids are in the order of time. The mailed token is stored only as its hash.
 */
export class Invitation extends InvitationSchema.class {}

InvitationSchema.setClass(Invitation);
