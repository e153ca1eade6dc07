import { validate as isUuid } from 'uuid';
import { z } from 'zod';
import { isStorable, text } from '../../server/accounts/users/index.ts';
import { ServiceError } from '../../server/errors.ts';
import { eventTypes } from '../../server/shared/event-types.ts';
import { MAX_WEBHOOKS } from '../../server/shared/receivers.ts';
import { EVERY_TYPE, type ListedDelivery, type ListedWebhook } from '../../server/webhooks/index.ts';
import { administratorsMeta } from '../administrators-meta.ts';
import { answer, done } from '../schemas/done.ts';
import { MAX_PAGE, pageOf, uuidPage } from '../schemas/page.ts';
import { toUnixSeconds, toUnixSecondsOrNull, unixSeconds } from '../schemas/unix-seconds.ts';
import { administratorOf, adminProcedure, recentAdminProcedure, router } from '../trpc.ts';

const example = '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c';
const webhookId = z.string().meta({ example });
const deliveryId = z.string().meta({ example, description: 'The id of the event' });

/** Malformed ids match nothing. */
const existing = (id: z.ZodString, what: string) =>
  id.refine((text) => {
    if (!isUuid(text)) throw new ServiceError('NOT_FOUND', { message: `There is no such ${what}` });
    return true;
  });

const ofWebhook = z.object({ id: existing(webhookId, 'webhook') });

/** A receiver and its subscription. `url` is checked by the sender. */
const given = {
  url: z.string().max(2048).meta({
    description: 'https, without user, password and fragment; its host must have a public address',
    example: 'https://crm.example.com/hooks/accounts',
  }),
  types: z
    .array(z.enum([EVERY_TYPE, ...eventTypes]))
    .min(1)
    .max(1 + eventTypes.length)
    .meta({ description: 'Types of events; `*` means every type', example: ['user.created', 'user.removed'] }),
  include: z
    .array(z.enum(['user']))
    .max(1)
    .meta({
      description: '`user`: `data.user` is the profile, as `service.users` returns it at the time of sending',
    }),
  description: text(200, isStorable),
};

const webhook = z
  .object({
    id: webhookId,
    url: z.string(),
    types: z.array(z.string()),
    include: z.array(z.string()),
    description: z.string(),
    enabled: z.boolean(),
    disabledBy: z
      .enum(['administrator', 'gone', 'failing'])
      .nullable()
      .meta({ description: '`gone`: the receiver answered 410; `failing`: no success for three days' }),
    failingSince: z
      .int()
      .nullable()
      .meta({ description: 'Unix seconds: the first failure after the last success; null while deliveries succeed' }),
    createdAt: unixSeconds,
  })
  .meta({ id: 'Webhook' });

const toListed = ({ disabledBy, failingSince, createdAt, ...row }: ListedWebhook) => ({
  ...row,
  enabled: disabledBy === null,
  disabledBy,
  failingSince: toUnixSecondsOrNull(failingSince),
  createdAt: toUnixSeconds(createdAt),
});

const delivery = z
  .object({
    id: deliveryId,
    number: z.int().meta({ description: 'The number of the event in the stream' }),
    type: z.string(),
    state: z.enum(['waiting', 'delivered', 'failed']),
    attempts: z.int().meta({ description: 'Tries so far' }),
    status: z.int().nullable().meta({ description: 'The HTTP status of the last try' }),
    error: z.string().nullable().meta({
      description:
        'Why the last try had no response: `timeout`, `unknown-host`, `forbidden-address`, `certificate`, `connection`; `secret`: the secret cannot be decrypted; `no-event`: the event is no longer stored',
    }),
    answer: z.string().nullable().meta({ description: 'The first 1000 characters of the last response' }),
    createdAt: unixSeconds,
    triedAt: z.int().nullable().meta({ description: 'Unix seconds' }),
    nextTryAt: z.int().nullable().meta({ description: 'Unix seconds; null unless it waits' }),
  })
  .meta({ id: 'WebhookDelivery' });

const toDelivery = ({ createdAt, triedAt, dueAt, ...row }: ListedDelivery) => ({
  ...row,
  createdAt: toUnixSeconds(createdAt),
  triedAt: toUnixSecondsOrNull(triedAt),
  nextTryAt: toUnixSecondsOrNull(dueAt),
});

const { read, change } = administratorsMeta('Webhooks');

/** Receivers of events, for administrators. */
export const webhooks = router({
  list: adminProcedure
    .meta(read('/api/webhooks', 'All webhooks'))
    .output(z.object({ data: z.array(webhook).meta({ description: `Oldest first; at most ${MAX_WEBHOOKS}` }) }))
    .query(async ({ ctx }) => ({ data: (await ctx.webhooks.list()).map(toListed) })),

  get: adminProcedure
    .meta(read('/api/webhooks/{id}', 'One webhook', ['NOT_FOUND']))
    .input(ofWebhook)
    .output(z.object({ webhook }))
    .query(async ({ ctx, input: { id } }) => ({ webhook: toListed(await ctx.webhooks.get(id)) })),

  create: recentAdminProcedure
    .meta(
      change('POST', '/api/webhooks', {
        summary: 'Add a webhook',
        description: `The secret is returned only here. TOO_MANY_WEBHOOKS: there are ${MAX_WEBHOOKS}.`,
        status: 201,
        errors: ['VALIDATION_FAILED', 'TOO_MANY_WEBHOOKS'],
      }),
    )
    .input(z.object({ ...given, include: given.include.default([]), description: given.description.default('') }))
    .output(z.object({ webhook, secret: z.string().meta({ example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }) }))
    .mutation(async ({ ctx, input }) => {
      const created = await ctx.webhooks.create(input, administratorOf(ctx));
      return { webhook: toListed(created.webhook), secret: created.secret };
    }),

  update: recentAdminProcedure
    .meta(
      change('PUT', '/api/webhooks/{id}', {
        summary: 'Change a webhook',
        description: 'Only what is sent changes. `enabled`: true forgets earlier failures.',
        errors: ['VALIDATION_FAILED', 'NOT_FOUND'],
      }),
    )
    .input(ofWebhook.extend(z.object({ ...given, enabled: z.boolean() }).partial().shape))
    .output(z.object({ webhook }))
    .mutation(async ({ ctx, input: { id, ...sent } }) => ({
      webhook: toListed(await ctx.webhooks.update(id, sent, administratorOf(ctx))),
    })),

  delete: recentAdminProcedure
    .meta(
      change('DELETE', '/api/webhooks/{id}', { summary: 'Remove a webhook and its deliveries', errors: ['NOT_FOUND'] }),
    )
    .input(ofWebhook)
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.webhooks.remove(id, administratorOf(ctx));
      return answer('The webhook is removed.');
    }),

  rotateSecret: recentAdminProcedure
    .meta(
      change('POST', '/api/webhooks/{id}/secret', {
        summary: 'A new secret',
        description: 'The former secret signs too for 24 hours. The new one is returned only here.',
        errors: ['NOT_FOUND'],
      }),
    )
    .input(ofWebhook)
    .output(z.object({ secret: z.string(), formerUntil: unixSeconds }))
    .mutation(async ({ ctx, input: { id } }) => {
      const { secret, formerUntil } = await ctx.webhooks.rotateSecret(id, administratorOf(ctx));
      return { secret, formerUntil: toUnixSeconds(formerUntil) };
    }),

  test: recentAdminProcedure
    .meta(
      change('POST', '/api/webhooks/{id}/test', {
        summary: 'Send the event `webhook.test` now',
        description: 'Returns what came back. It is not tried again.',
        errors: ['NOT_FOUND'],
      }),
    )
    .input(ofWebhook)
    .output(
      z.object({
        success: z.boolean().meta({ description: 'Whether the receiver answered 2xx' }),
        status: z.int().optional(),
        error: z.string().optional().meta({ description: 'The same values as `error` of a delivery' }),
        answer: z.string().optional().meta({ description: 'The first 1000 characters of the response' }),
        durationMs: z.int(),
      }),
    )
    .mutation(async ({ ctx, input: { id } }) => {
      const { isSuccess, ...result } = await ctx.webhooks.test(id, administratorOf(ctx));
      return { success: isSuccess, ...result };
    }),

  deliveries: adminProcedure
    .meta(
      read('/api/webhooks/{id}/deliveries', 'Deliveries of the last 30 days, newest first', [
        'VALIDATION_FAILED',
        'NOT_FOUND',
      ]),
    )
    .input(ofWebhook.extend(uuidPage.shape))
    .output(pageOf(delivery))
    .query(async ({ ctx, input: { id, limit = MAX_PAGE, cursor } }) => {
      const { deliveries, ...next } = await ctx.webhooks.deliveries(id, { limit, cursor });
      return { data: deliveries.map(toDelivery), ...next };
    }),

  redeliver: recentAdminProcedure
    .meta(
      change('POST', '/api/webhooks/{id}/deliveries/{deliveryId}', {
        summary: 'Send an event again',
        description: 'With the same `webhook-id`.',
        errors: ['NOT_FOUND', 'WEBHOOK_DISABLED'],
      }),
    )
    .input(ofWebhook.extend({ deliveryId: existing(deliveryId, 'delivery') }))
    .output(done)
    .mutation(async ({ ctx, input: { id, deliveryId } }) => {
      await ctx.webhooks.redeliver(id, deliveryId, administratorOf(ctx));
      return answer('The event will be sent again.');
    }),

  redeliverSince: recentAdminProcedure
    .meta(
      change('POST', '/api/webhooks/{id}/deliveries', {
        summary: 'Send all events since a time again',
        description: 'Also those that happened while the webhook was disabled, and those that were delivered.',
        errors: ['VALIDATION_FAILED', 'NOT_FOUND', 'WEBHOOK_DISABLED'],
      }),
    )
    .input(ofWebhook.extend({ after: z.int().min(0).meta({ description: 'Unix seconds', example: 1_700_000_000 }) }))
    .output(done.extend({ events: z.int().meta({ description: 'How many are sent' }) }))
    .mutation(async ({ ctx, input: { id, after } }) => {
      const events = await ctx.webhooks.redeliverSince(id, after * 1000, administratorOf(ctx));
      return { ...answer('The events are sent again.'), events };
    }),
});
