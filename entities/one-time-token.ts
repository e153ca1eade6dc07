import { defineEntity, p } from '@mikro-orm/core';

export const OneTimeTokenSchema = defineEntity({
  name: 'OneTimeToken',
  tableName: 'one_time_tokens',
  properties: {
    id: p.string().primary(),
    userId: p.string(),
    purpose: p.string(),
    tokenHash: p.string().hidden(),
    expiresAt: p.bigint('number'),
    used: p.boolean(),
    reservedUntil: p.bigint('number').nullable(),
  },
});

/**
 * A mailed token, stored only as its hash. `purpose` is the kind of its mail. (user, purpose) is unique: a newer token
 * replaces the older one.
 */
export class OneTimeToken extends OneTimeTokenSchema.class {}

OneTimeTokenSchema.setClass(OneTimeToken);
