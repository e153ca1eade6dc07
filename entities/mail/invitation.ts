/*
 * `invitedBy` is an administrator's id (the row is removed with that user), or null for the operator. `id` is a UUIDv7,
 * so ids are in order of time. The mailed token is stored only as its hash. `returnTo`: where the page of the link leads.
 */

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
    returnTo: p.string().nullable(),
  },
});

/**
 * An invitation of an address to create an account, at most one per address. Its row is deleted when it is used,
 * revoked or replaced.
 */
export class Invitation extends InvitationSchema.class {}

InvitationSchema.setClass(Invitation);
