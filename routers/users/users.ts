import { z } from 'zod';
import { type OptionalProfileField, optionalProfileFields } from '../entities/index.ts';
import { isSearchable, isSearchCursor } from '../server/accounts/user-search.ts';
import type { Account, ListedUser } from '../server/accounts/users.ts';
import { ServiceError } from '../server/errors.ts';
import * as fields from './fields.ts';
import { invitationProcedures } from './invitations.ts';
import { publicRead } from './public-users.ts';
import { router } from './trpc.ts';
import { toUnixSeconds, unixSeconds } from './unix-seconds.ts';

/** An unset field is the empty string (interface.md section 2.1); a PUT of what was read changes nothing. */
const optionalText = z.string().meta({ description: 'Empty where it is not set' });

export const listed = z.object({
  id: z.string(),
  name: z.string(),
  email: z.string(),
  avatar: optionalText,
  provider: z.string(),
  createdAt: unixSeconds,
});

export const userId = z.string().meta({ example: 'user_01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c' });
export const isUserId = (text: string) => /^user_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);

export const toListed = ({ id, name, email, avatar, provider, createdAt }: ListedUser) => ({
  id,
  name,
  email,
  avatar: avatar ?? '',
  provider,
  createdAt: toUnixSeconds(createdAt),
});

const texts = Object.fromEntries(optionalProfileFields.map((field) => [field, optionalText]));

/** The public view of a user: what GET /api/users/:id answers. */
export const publicUser = listed
  .extend(texts as Record<OptionalProfileField, typeof optionalText>)
  .meta({ id: 'User' });

export const toPublicUser = (account: Account) => {
  // Runs on every profile read: adding to the new object costs less than merging two.
  const user = toListed(account) as z.output<typeof publicUser>;
  for (const field of optionalProfileFields) user[field] = account[field] ?? '';
  return user;
};

/** A page of users, or of those that `q` finds. */
export const listInput = z
  .object({
    limit: fields.pageLimit,
    cursor: z.string().optional().meta({ description: 'nextCursor of the page before, which had the same q' }),
    q: z
      .string()
      .max(254)
      .refine((text) => text.isWellFormed(), {
        error: 'Contains characters that are not allowed',
        params: { rule: 'invalid_characters' },
      })
      .refine((text) => text === '' || isSearchable(text), {
        error: 'Must have something to search for',
        params: { rule: 'not_searchable' },
      })
      .optional()
      .meta({
        description:
          'Only users whose name or email starts with this, without regard to case and accents: first those found by name, in its order, then those found by email only. A page of them may be short although more follow',
      }),
  })
  .refine(({ cursor, q }) => cursor === undefined || (q ? isSearchCursor(cursor, q) : isUserId(cursor)), {
    path: ['cursor'],
    error: 'Must be a cursor from an earlier page',
    params: { rule: 'invalid_cursor' },
  })
  .optional();

export const users = router({
  ...invitationProcedures,

  list: publicRead
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/users',
        summary: 'List users, newest first',
        description:
          'What it shows, and to whom, is the service’s to say (PUBLIC_USERS): everything to everyone, unless set otherwise. `email` may be left out; then `q` finds by name only.',
        tags: ['Users'],
        protect: false,
        isPublicRead: true,
        errors: ['VALIDATION_FAILED', 'RATE_LIMITED'],
      },
    })
    .input(listInput)
    .output(
      z.object({
        data: z.array(listed),
        nextCursor: z.string().optional().meta({ description: 'Only where more follow' }),
      }),
    )
    .query(async ({ ctx, input: { limit = fields.LARGEST_PAGE, cursor, q } = {} }) => {
      const { users: all, searchUsers, publicUsers } = ctx.accounts;
      const byAddress = publicUsers !== 'without-email';
      const { users: found, ...next } = await (q
        ? searchUsers({ q, cursor, limit, byAddress })
        : all.list({ cursor, limit }));
      return { data: found.map(toListed), ...next };
    }),

  get: publicRead
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/users/{id}',
        summary: 'One user',
        description:
          'What it shows, and to whom, is the service’s to say (PUBLIC_USERS), as with the list. `email` may be left out.',
        tags: ['Users'],
        protect: false,
        isPublicRead: true,
        errors: ['NOT_FOUND', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ id: userId }))
    .output(z.object({ data: publicUser }))
    .query(async ({ ctx, input: { id } }) => {
      const { find, findPublic } = ctx.accounts.users;
      // Users see what they have just changed; whose session it is would have to be looked up.
      const look = ctx.sessionToken === undefined ? findPublic : find;
      const user = isUserId(id) ? await look(id) : undefined;
      if (!user) throw new ServiceError('NOT_FOUND', { message: 'User not found' });
      return { data: toPublicUser(user) };
    }),
});
