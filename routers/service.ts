import { z } from 'zod';
import { ServiceError } from '../server/errors.ts';
import { publicEvent } from '../server/events/catalogue.ts';
import { isToken } from '../server/lib/random-token.ts';
import { type EventType, eventTypes } from '../server/shared/event-types.ts';
import { scopeNames } from '../server/shared/scopes.ts';
import { serviceProfile } from './account/profile.ts';
import { answer, done } from './schemas/done.ts';
import { fieldsIn, writtenFields } from './schemas/profile-fields.ts';
import { toUnixSeconds, unixSeconds } from './schemas/unix-seconds.ts';
import { callerOf, router, serviceProcedure } from './trpc.ts';
import { addressOptions, fileAddress, toFileAddress, uploadName } from './uploads/stored-uploads.ts';
import { isUserId, userId } from './users/users.ts';

const MAX_USERS = 100;
const MAX_EVENTS = 1000;
const MAX_WAIT_SECONDS = 25;

const isEventType = (type: string): type is EventType => (eventTypes as readonly string[]).includes(type);

/** A list, or over REST names separated by commas. */
const types = z
  .union([z.array(z.enum(eventTypes)).min(1).max(eventTypes.length), z.string()])
  .transform((given, { addIssue }): EventType[] => {
    const listed: string[] = typeof given === 'string' ? given.split(',') : given;
    if (listed.every(isEventType)) return listed;
    addIssue({ code: 'custom', message: 'Must have names of event types', params: { rule: 'unknown_type' } });
    return z.NEVER;
  });

const credential = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('key'), id: z.string() }),
  z.object({ kind: z.literal('token'), applicationId: z.string(), grantId: z.string() }),
]);

/** For other services, with a service token. Over /trpc only, except the events. Only waiting is limited. */
export const service = router({
  // A mutation, so that no log or proxy records the name of a file of a user.
  fileAddress: serviceProcedure
    .meta({
      summary:
        'An address at which a file of any user can be read for some minutes. The calling service decides who may read it.',
    })
    .input(z.object({ name: uploadName, ...addressOptions }))
    .output(fileAddress)
    .mutation(async ({ ctx, input: { name, ...options } }) => toFileAddress(await ctx.uploads.address(name, options))),

  // A mutation, because it may extend the session, and because a query would put the session token into the URL, which
  // logs and proxies record.
  session: serviceProcedure
    .meta({
      summary:
        'The user and session of a cookie `auth_session`, an access key or a token that another service received, or null. Counts as a use: it may prolong the session.',
    })
    .input(
      z.object({
        token: z.string().meta({ description: 'The value of the cookie `auth_session`, or the bearer credential' }),
      }),
    )
    .output(
      z
        .object({
          user: serviceProfile,
          session: z.object({ createdAt: unixSeconds, expiresAt: unixSeconds }),
          fresh: z.boolean().meta({
            description: 'This use extended the session: set the cookie again, until session.expiresAt',
          }),
          scopes: z
            .array(z.enum(scopeNames))
            .optional()
            .meta({ description: 'What an access key or token allows; absent for a session, which allows everything' }),
          credential: credential.optional().meta({ description: 'Absent for a session' }),
          impersonation: z
            .object({ by: z.string() })
            .optional()
            .meta({ description: 'The administrator who acts for the user; absent in all other sessions' }),
        })
        .nullable(),
    )
    .mutation(async ({ ctx, input: { token } }) => {
      // Tokens of sessions and of applications have the same form.
      const own = isToken(token) ? await ctx.accounts.sessions.validate(token) : null;
      const bearer = own ? null : await ctx.access.resolve({ token });
      const session = own ?? bearer;
      if (!session) return null;
      const { user, createdAt, expiresAt, fresh } = session;
      return {
        user: ctx.accounts.users.views.toProfile(user),
        session: { createdAt: toUnixSeconds(createdAt), expiresAt: toUnixSeconds(expiresAt) },
        fresh,
        ...(own?.actor && { impersonation: { by: own.actor.id } }),
        ...(bearer && { scopes: [...bearer.scopes], credential: bearer.credential }),
      };
    }),

  users: serviceProcedure
    .meta({ summary: `At most ${MAX_USERS} users at once, in the order of the ids; unknown ones are left out` })
    .input(z.object({ ids: z.array(userId).max(MAX_USERS) }))
    .output(z.object({ users: z.array(serviceProfile) }))
    .query(async ({ ctx, input }) => {
      const ids = [...new Set(input.ids)].filter(isUserId);
      const found = await ctx.accounts.users.findAll(ids);
      return { users: found.map(ctx.accounts.users.views.toProfile) };
    }),

  setFields: serviceProcedure
    .meta({
      summary:
        'Change fields of a user (`PROFILE_FIELDS`): those that the owner or services write. FIELD_TAKEN: another account has the value of a unique field',
    })
    .input(z.object({ userId, fields: writtenFields('services').nonoptional() }))
    .output(z.object({ user: serviceProfile }))
    .mutation(async ({ ctx, input: { userId: id, fields: sent } }) => {
      const { setFields, views } = ctx.accounts.users;
      const change = fieldsIn(ctx, sent, { write: 'services' });
      if (!change) throw new ServiceError('NOT_FOUND', { message: 'No fields are configured' });
      if (!isUserId(id)) throw new ServiceError('NOT_FOUND', { message: 'User not found' });
      const caller = callerOf(ctx, { actor: `service:${ctx.service}` });
      return { user: views.toProfile(await setFields(id, change, caller)) };
    }),

  endSessions: serviceProcedure
    .meta({ summary: 'End every session of a user, on all devices' })
    .input(z.object({ userId }))
    .output(done)
    .mutation(async ({ ctx, input: { userId: id } }) => {
      if (
        !isUserId(id) ||
        !(await ctx.accounts.sessions.endAll(id, callerOf(ctx, { actor: `service:${ctx.service}` })))
      ) {
        throw new ServiceError('NOT_FOUND', { message: 'User not found' });
      }
      return answer('All sessions of the user were ended.');
    }),

  events: serviceProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/events',
        summary: 'What happened to accounts, in one order (service token)',
        description: `Each event once for a reader that asks after \`next\` of the page before. With \`waitSeconds\` a call waits until there is an event; each service may have some calls waiting. EVENTS_EXPIRED: events after this number were deleted unread, for their age or by a restored backup; read the users again, and the events after 0.`,
        tags: ['Events'],
        protect: false,
        serviceToken: true,
        errors: ['VALIDATION_FAILED', 'EVENTS_EXPIRED', 'RATE_LIMITED'],
      },
    })
    .input(
      z.object({
        after: z.coerce
          .number<number>()
          .int()
          .min(0)
          .meta({ description: 'The number to read after; 0 begins with the oldest event that is stored' }),
        limit: z.coerce
          .number<number>()
          .int()
          .min(1)
          .max(MAX_EVENTS)
          .default(100)
          .meta({ description: `At most this many, 1 to ${MAX_EVENTS}; 100 by default` }),
        types: types.optional().meta({ description: 'Only these types, separated by commas; all by default' }),
        waitSeconds: z.coerce
          .number<number>()
          .min(0)
          .max(MAX_WAIT_SECONDS)
          .default(0)
          .meta({ description: `How long to wait for an event, at most ${MAX_WAIT_SECONDS}; 0 by default` }),
      }),
    )
    .output(
      z.object({
        data: z.array(publicEvent),
        next: z.int().meta({ description: 'The number to read after next' }),
        last: z.int().meta({ description: 'The last number of the stream' }),
      }),
    )
    .query(async ({ ctx, input: { waitSeconds, ...query } }) => {
      const waiting = { waitMs: Math.ceil(waitSeconds * 1000), signal: ctx.ended() };
      const { events, next, last } = await ctx.events.feed(ctx.service ?? '', { ...query, ...waiting });
      return { data: events, next, last };
    }),
});
