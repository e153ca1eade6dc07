import { defineEntity, p } from '@mikro-orm/core';

export const SessionSchema = defineEntity({
  name: 'Session',
  tableName: 'sessions',
  properties: {
    id: p.string().primary(),
    userId: p.string(),
    epoch: p.integer(),
    tokenHash: p.string().nullable().hidden(),
    method: p.string(),
    address: p.string(),
    device: p.string(),
    createdAt: p.bigint('number'),
    authenticatedAt: p.bigint('number'),
    lastUsedAt: p.bigint('number'),
    expiresAt: p.bigint('number'),
  },
});

/**
 * A session of a user, who is shown it as a device. It is alive only while this row exists, whatever the store still has
 * under its token, and while `epoch` is the user's. `tokenHash` leads to its key in the store; the release before left it
 * null. `method` is `password` or the name of an identity provider, `device` the browser and system in words.
 * `authenticatedAt` is when the user last gave a credential in it, `lastUsedAt` the hour of its last use.
 */
export class Session extends SessionSchema.class {}

SessionSchema.setClass(Session);
