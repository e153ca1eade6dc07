import { z } from 'zod';
import type { EventPage, ListedEvent } from '../../server/activity/index.ts';
import { eventKinds, type Kind } from '../../server/activity/kinds.ts';
import { MAX_PAGE, pageOf, uuidPage } from '../schemas/page.ts';
import { toUnixSeconds, unixSeconds } from '../schemas/unix-seconds.ts';
import { router, sessionProcedure } from '../trpc.ts';

const code = (text: unknown) => `\`${text}\``;

/** Each kind with its meaning, and the names, values and meanings of its details. */
const kinds = Object.entries<Kind>(eventKinds).map(([kind, { meaning, details = {} }]) => {
  const { properties = {} } = z.toJSONSchema(z.object(details));
  const described = Object.entries(properties as Record<string, z.core.JSONSchema.JSONSchema>).map(
    ([name, { enum: values, description }]) =>
      [`${code(`details.${name}`)}:`, description, ...(values ? [`(${values.map(code).join(', ')})`] : [])].join(' '),
  );
  return `${code(kind)}: ${[meaning, ...described].join(', ')}`;
});

const listed = z.object({
  id: z.string().meta({ example: '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c' }),
  at: unixSeconds,
  kind: z.string().meta({ description: kinds.join('; '), example: 'logged-in' }),
  actor: z.string().meta({
    description: '`user`, `administrator`, `operator` at the command line, or `service:` and its name',
    example: 'user',
  }),
  address: z.string().meta({
    description: 'The IP address; empty for a background job, and for the user if another actor acted',
    example: '203.0.113.7',
  }),
  device: z.string().meta({
    description: 'As the User-Agent describes it; empty for the user if another actor acted',
    example: 'Firefox on Linux',
  }),
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

export const eventPage = pageOf(listed);

export const toEventPage = ({ events, ...next }: EventPage) => ({ data: events.map(toListed), ...next });

export const activity = router({
  list: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/activity',
        summary: 'The activity of the account of the logged-in user, newest first',
        tags: ['Account'],
        protect: true,
        errors: ['VALIDATION_FAILED'],
      },
    })
    .input(uuidPage.optional())
    .output(eventPage)
    .query(async ({ ctx, input: { limit = MAX_PAGE, cursor } = {} }) =>
      toEventPage(await ctx.accounts.listActivity(ctx.session.user.id, { limit, cursor }, 'user')),
    ),
});
