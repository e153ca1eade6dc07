import { defineEntity, p } from '@mikro-orm/core';

export const UniqueValueSchema = defineEntity({
  name: 'UniqueValue',
  tableName: 'unique_values',
  properties: {
    field: p.string().primary(),
    valueHash: p.string().primary(),
    userId: p.string(),
  },
});

/** The value of a user in a field that no two users may have alike. The hash compares byte by byte in every database. */
export class UniqueValue extends UniqueValueSchema.class {}

UniqueValueSchema.setClass(UniqueValue);
