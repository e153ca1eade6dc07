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

/** That a user has accepted a version of the terms, and when. A user has a row for each version. */
export class Consent extends ConsentSchema.class {}

ConsentSchema.setClass(Consent);
