import { z } from 'zod';
import { type OptionalProfileField, optionalProfileFields } from '../../entities/index.ts';
import { isSearchable, isSearchCursor, rule, shortText } from '../../server/accounts/users/index.ts';
import { ServiceError } from '../../server/errors.ts';
import { invalidCursor, MAX_PAGE, pageLimit, pageOf } from '../schemas/page.ts';
import { readFields } from '../schemas/profile-fields.ts';
import { unixSeconds } from '../schemas/unix-seconds.ts';
import { router } from '../trpc.ts';
import { invitationProcedures } from './invitations.ts';
import { publicRead } from './public-read.ts';

/** An unset field is the empty string (interface.md section 2.1): a PUT of a profile that was read changes nothing. */
const optionalText = z.string().meta({ description: 'Empty if unset' });

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

const texts = Object.fromEntries(optionalProfileFields.map((field) => [field, optionalText]));

/** The public view of a user: the response of GET /api/users/:id. */
export const publicUser = listed
  .extend({ ...(texts as Record<OptionalProfileField, typeof optionalText>), fields: readFields('public') })
  .meta({ id: 'User' });

export const listFields = {
  limit: pageLimit,
  cursor: z.string().optional().meta({ description: 'nextCursor of the previous page with the same q' }),
  q: shortText(254)
    .refine((text) => text.isWellFormed(), rule('invalid_characters', 'Contains characters that are not allowed'))
    .refine((text) => text === '' || isSearchable(text), rule('not_searchable', 'Must contain a searchable character'))
    .optional()
    .meta({
      description:
        'Only users with a name or email that starts with this, ignoring case and accents: first matches by name, in its order, then matches by email only. A page may be short even if another follows',
    }),
};

/** A page of all users, or of those that match `q`. */
const listInput = z
  .object(listFields)
  .refine(({ cursor, q }) => cursor === undefined || (q ? isSearchCursor(cursor, q) : isUserId(cursor)), {
    path: ['cursor'],
    ...invalidCursor,
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
          'PUBLIC_USERS restricts fields and callers; by default everyone sees everything. Without `email`, `q` matches names only.',
        tags: ['Users'],
        protect: false,
        isPublicRead: true,
        errors: ['VALIDATION_FAILED', 'RATE_LIMITED'],
      },
    })
    .input(listInput)
    .output(pageOf(listed.extend({ fields: readFields('public') })))
    .query(async ({ ctx, input: { limit = MAX_PAGE, cursor, q } = {} }) => {
      const { list, search, publicUsers, views } = ctx.accounts.users;
      const byAddress = publicUsers !== 'without-email';
      const { users: found, ...next } = await (q ? search({ q, cursor, limit, byAddress }) : list({ cursor, limit }));
      return { data: found.map(views.toListed), ...next };
    }),

  get: publicRead
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/users/{id}',
        summary: 'One user',
        description: 'PUBLIC_USERS restricts fields and callers, as for the list: `email` may be absent.',
        tags: ['Users'],
        protect: false,
        isPublicRead: true,
        errors: ['NOT_FOUND', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ id: userId }))
    .output(z.object({ data: publicUser }))
    .query(async ({ ctx, input: { id } }) => {
      const { find, findPublic, views } = ctx.accounts.users;
      // From the primary: users must see their own changes, and finding the session's user would need another read.
      const look = ctx.sessionToken === undefined ? findPublic : find;
      const user = isUserId(id) ? await look(id) : undefined;
      if (!user) throw new ServiceError('NOT_FOUND', { message: 'User not found' });
      return { data: views.toPublicUser(user) };
    }),
});
