/*
 * `id` is a UUIDv7, so ids are in order of time. `kind` is one of `server/activity/kinds.ts`. `actor` is `user`,
 * `administrator` (with `actorId`, that user's id), `operator` or `service:<name>`. `details` is JSON without secrets.
 * The database computes `topic`: the kind, or `logged-in:new` for a login that was reported by mail. `number` is the
 * place in the stream of public events: null until the sequencer gives it, 0 for an event that is not public, -1 for
 * one of a kind that the release of the sequencer does not know.
 */

import { defineEntity, p } from '@mikro-orm/core';

export const ActivityEventSchema = defineEntity({
  name: 'ActivityEvent',
  tableName: 'activity',
  properties: {
    id: p.string().primary(),
    userId: p.string(),
    kind: p.string(),
    actor: p.string(),
    actorId: p.string().nullable(),
    address: p.string(),
    device: p.string(),
    requestId: p.string(),
    details: p.string().nullable(),
    createdAt: p.bigint('number'),
    topic: p.string().nullable(),
    number: p.bigint('number').nullable(),
  },
});

/** A security event of an account, inserted in the transaction of its change; only its number is set later. */
export class ActivityEvent extends ActivityEventSchema.class {}

ActivityEventSchema.setClass(ActivityEvent);
