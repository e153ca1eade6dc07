/*
 * `purpose` is the kind of the token's mail. `coversFrom` is the time of the first act that its mails report,
 * `disownedAt` when the account was disowned with it. `returnTo`: where the page of the link leads.
 */

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
    coversFrom: p.bigint('number').nullable(),
    disownedAt: p.bigint('number').nullable(),
    returnTo: p.string().nullable(),
  },
});

/** A mailed token, stored only as its hash. (user, purpose) is unique: a newer token replaces the older one. */
export class OneTimeToken extends OneTimeTokenSchema.class {}

OneTimeTokenSchema.setClass(OneTimeToken);
