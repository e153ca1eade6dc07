/*
 * Users see sessions as devices. `tokenHash` is the session's key in the store; null in sessions of the release before.
 * `method` is `password` or the name of an identity provider, `device` the browser and system in words.
 * `authenticatedAt` is when the user last gave a credential in it, `lastUsedAt` the hour of its last use.
 */

import { defineEntity, p } from '@mikro-orm/core';
import type { LoginMethod } from '../../server/shared/method-names.ts';

export const SessionSchema = defineEntity({
  name: 'Session',
  tableName: 'sessions',
  properties: {
    id: p.string().primary(),
    userId: p.string(),
    epoch: p.integer(),
    tokenHash: p.string().nullable().hidden(),
    method: p.string().$type<LoginMethod>(),
    address: p.string(),
    device: p.string(),
    createdAt: p.bigint('number'),
    authenticatedAt: p.bigint('number'),
    lastUsedAt: p.bigint('number'),
    expiresAt: p.bigint('number'),
  },
});

/**
 * A user's session. It is valid only while this row exists, whatever the store holds, and while `epoch` equals the
 * user's.
 */
export class Session extends SessionSchema.class {}

SessionSchema.setClass(Session);
