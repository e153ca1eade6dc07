import { z } from 'zod';
import type { EventPage, ListedEvent } from '../server/activity/index.ts';
import { eventKinds } from '../server/activity/kinds.ts';
import * as fields from './fields.ts';
import { router, sessionProcedure } from './trpc.ts';
import { toUnixSeconds, unixSeconds } from './unix-seconds.ts';

const kinds = Object.entries(eventKinds).map(([kind, meaning]) => `\`${kind}\`: ${meaning}`);

const listed = z.object({
  id: z.string().meta({ example: '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c' }),
  at: unixSeconds,
  kind: z.string().meta({ description: kinds.join('; '), example: 'logged-in' }),
  actor: z.string().meta({
    description: '`user`, `administrator`, `operator` at the command line, or `service:` and its name',
    example: 'user',
  }),
  address: z.string().meta({ description: 'The IP address; empty for a background job', example: '203.0.113.7' }),
  device: z.string().meta({ description: 'As its program named itself', example: 'Firefox on Linux' }),
  details: z.record(z.string(), z.string()).optional(),
});

const toListed = ({ id, kind, actor, address, device, details, createdAt }: ListedEvent) => ({
  id,
  at: toUnixSeconds(createdAt),
  kind,
  actor,
  address,
  device,
  ...(details && { details }),
});

/** A page of events, newest first. */
export const eventPage = z.object({
  data: z.array(listed),
  nextCursor: z.string().optional().meta({ description: 'Only where more follow' }),
});

export const toEventPage = ({ events, ...next }: EventPage) => ({ data: events.map(toListed), ...next });

export const activity = router({
  list: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/activity',
        summary: 'What happened to the account of the logged-in user, newest first',
        tags: ['Account'],
        protect: true,
        errors: ['VALIDATION_FAILED'],
      },
    })
    .input(z.object({ limit: fields.pageLimit, cursor: fields.uuidCursor }).optional())
    .output(eventPage)
    .query(async ({ ctx, input: { limit = fields.LARGEST_PAGE, cursor } = {} }) =>
      toEventPage(await ctx.accounts.activity(ctx.session.user.id, { limit, cursor })),
    ),
});
