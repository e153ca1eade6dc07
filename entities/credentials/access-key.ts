/*
 * `id` is a UUID (v7) in base62, as in the key itself. `secretHash` is the SHA-256 of the secret. `scopes` have commas
 * between them. `epoch` is the user's session epoch at creation. `lastUsedAt` may be a minute late.
 */

import { defineEntity, p } from '@mikro-orm/core';

export const AccessKeySchema = defineEntity({
  name: 'AccessKey',
  tableName: 'access_keys',
  properties: {
    id: p.string().primary(),
    userId: p.string(),
    name: p.string(),
    secretHash: p.string().hidden(),
    scopes: p.string(),
    epoch: p.integer(),
    createdAt: p.bigint('number'),
    expiresAt: p.bigint('number').nullable(),
    lastUsedAt: p.bigint('number').nullable(),
  },
});

/** A personal access key. It is valid while `epoch` equals the user's, until it expires. */
export class AccessKey extends AccessKeySchema.class {}

AccessKeySchema.setClass(AccessKey);
