import { defineEntity, p } from '@mikro-orm/core';

export const ConsentSchema = defineEntity({
  name: 'Consent',
  tableName: 'consents',
  properties: {
    id: p.string().primary(),
    userId: p.string(),
    version: p.string(),
    createdAt: p.bigint('number'),
  },
});

/** A version of the terms that a user has accepted, and when. One row per version. */
export class Consent extends ConsentSchema.class {}

ConsentSchema.setClass(Consent);
