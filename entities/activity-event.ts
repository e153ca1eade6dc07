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
  },
});

/**
 * Something that happened to a user's account, written in the transaction that did it. Rows are never updated. `id` is a
 * UUIDv7, so that ids are in the order of time. `kind` is one of those in `server/activity/kinds.ts`; `actor` is `user`,
 * `administrator` (with `actorId`, the id of that user), `operator` or `service:<name>`; `details` is JSON, and holds no secret.
 */
export class ActivityEvent extends ActivityEventSchema.class {}

ActivityEventSchema.setClass(ActivityEvent);
