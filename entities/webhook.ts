/*
 * `types` is a list of public types with commas, or `*`; `logout` makes the row the address for back-channel logout
 * of the application with the same id, without a secret. `include` is empty or `user`. Secrets are encrypted under
 * APP_SECRET; `formerSecret` also signs until `formerUntil`. `dueAt` is the end of the lease of the process that
 * delivers, 0 without one, and `owner` the lease. `administratorId` is who created it or last enabled it, `changedBy`
 * who changed it last; null for an operator. Events since `enabledAt` belong to it. `failingSince` is the first failure
 * after the last success, `disabledBy` who disabled it: an administrator, or the deliveries (`gone`, `failing`).
 */

import { defineEntity, p } from '@mikro-orm/core';

export const WebhookSchema = defineEntity({
  name: 'Webhook',
  tableName: 'webhooks',
  properties: {
    id: p.string().primary(),
    url: p.string(),
    types: p.string(),
    include: p.string(),
    description: p.string(),
    secret: p.string(),
    formerSecret: p.string().nullable(),
    formerUntil: p.bigint('number').nullable(),
    disabledBy: p.string().$type<'administrator' | 'gone' | 'failing'>().nullable(),
    enabledAt: p.bigint('number'),
    failingSince: p.bigint('number').nullable(),
    dueAt: p.bigint('number'),
    owner: p.string().nullable(),
    administratorId: p.string().nullable(),
    changedBy: p.string().nullable(),
    createdAt: p.bigint('number'),
  },
});

/** A subscription to events: where they are sent. */
export class Webhook extends WebhookSchema.class {}

WebhookSchema.setClass(Webhook);

/** waiting → delivered, or failed after the last try. */
export type DeliveryState = 'waiting' | 'delivered' | 'failed';

/*
 * `number`, `kind` and `userId` are copies from the event. `dueAt` is the time of the next try, null unless waiting.
 * `status` and `answer` are the response to the last try, `error` is why there was none.
 */
export const WebhookDeliverySchema = defineEntity({
  name: 'WebhookDelivery',
  tableName: 'webhook_deliveries',
  properties: {
    webhookId: p.string().primary(),
    eventId: p.string().primary(),
    number: p.bigint('number'),
    kind: p.string(),
    userId: p.string(),
    state: p.string().$type<DeliveryState>(),
    attempts: p.integer(),
    dueAt: p.bigint('number').nullable(),
    status: p.integer().nullable(),
    error: p.string().nullable(),
    answer: p.string().nullable(),
    createdAt: p.bigint('number'),
    triedAt: p.bigint('number').nullable(),
  },
});

/** An event to be sent to a webhook, and the outcome. */
export class WebhookDelivery extends WebhookDeliverySchema.class {}

WebhookDeliverySchema.setClass(WebhookDelivery);
