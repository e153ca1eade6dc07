/*
 * One row. `lastNumber` is the last number of the stream, `expiredNumber` the highest one that was deleted for its age.
 * `owner` numbers events until `endsAt`, by the database's clock.
 */

import { defineEntity, p } from '@mikro-orm/core';

export const EventSequenceSchema = defineEntity({
  name: 'EventSequence',
  tableName: 'event_sequence',
  properties: {
    id: p.integer().primary(),
    lastNumber: p.bigint('number'),
    expiredNumber: p.bigint('number'),
    owner: p.string(),
    endsAt: p.bigint('number'),
  },
});

/** The numbers of the stream of public events, and the lease of the sequencer that gives them. */
export class EventSequence extends EventSequenceSchema.class {}

EventSequenceSchema.setClass(EventSequence);
