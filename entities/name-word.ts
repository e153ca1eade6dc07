import { defineEntity, p } from '@mikro-orm/core';

export const NameWordSchema = defineEntity({
  name: 'NameWord',
  tableName: 'name_words',
  properties: {
    userId: p.string().primary(),
    word: p.string().primary(),
  },
});

/** The search key of a user's name from one of its later words on, so that `ortega` finds Lucía Ortega. */
export class NameWord extends NameWordSchema.class {}

NameWordSchema.setClass(NameWord);
