import { validate as isUuid } from 'uuid';
import { z } from 'zod';
import type { ListedInvitation } from '../server/accounts/invitation-rows.ts';
import { ServiceError } from '../server/errors.ts';
import { answer, done } from './done.ts';
import * as fields from './fields.ts';
import { adminProcedure, callerOf, recentAdminProcedure } from './trpc.ts';
import { toUnixSeconds, unixSeconds } from './unix-seconds.ts';

const invitationId = z.string().meta({ example: '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c' });

const listed = z.object({
  id: invitationId,
  email: z.string(),
  invitedBy: z
    .string()
    .optional()
    .meta({ description: 'The id of the administrator; absent where the operator invited' }),
  createdAt: unixSeconds,
  expiresAt: unixSeconds,
});

const toListed = ({ id, email, invitedBy, createdAt, expiresAt }: ListedInvitation) => ({
  id,
  email,
  ...(invitedBy !== null && { invitedBy }),
  createdAt: toUnixSeconds(createdAt),
  expiresAt: toUnixSeconds(expiresAt),
});

/** Invitations to create an account, by administrators: procedures of the router `users`. */
export const invitationProcedures = {
  invite: recentAdminProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/users/invitations',
        summary: 'Invite an address to create an account (administrators)',
        description:
          'Mails a link that works once and for 7 days, with this address only; it takes the place of an older one. Where registration is closed, the answer is REGISTRATION_CLOSED; EMAIL_TAKEN if it is the address of an account, or was until lately. Needs a session in which a credential was given in the last ten minutes.',
        tags: ['Users'],
        protect: true,
        status: 201,
        errors: [
          'VALIDATION_FAILED',
          'FORBIDDEN',
          'REAUTHENTICATION_REQUIRED',
          'REGISTRATION_CLOSED',
          'EMAIL_TAKEN',
          'RATE_LIMITED',
        ],
      },
    })
    .input(
      z.object({
        email: fields.email,
        language: fields.language.optional().meta({ description: 'Of the mail; left out: that of the browser' }),
      }),
    )
    .output(z.object({ success: z.literal(true), invitation: listed }))
    .mutation(async ({ ctx, input: { email, language } }) => {
      const invitation = await ctx.accounts.invite(ctx.session, { email, language }, callerOf(ctx));
      return { success: true as const, invitation: toListed(invitation) };
    }),

  invitations: adminProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/users/invitations',
        summary: 'The invitations that can be used, newest first (administrators)',
        tags: ['Users'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'FORBIDDEN'],
      },
    })
    .input(
      z.object({
        limit: fields.pageLimit,
        cursor: fields.uuidCursor,
      }),
    )
    .output(z.object({ data: z.array(listed), nextCursor: z.string().optional() }))
    .query(async ({ ctx, input: { limit = fields.LARGEST_PAGE, cursor } }) => {
      const { invitations, ...next } = await ctx.accounts.listInvitations({ limit, cursor });
      return { data: invitations.map(toListed), ...next };
    }),

  revokeInvitation: recentAdminProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/users/invitations/revoke',
        summary: 'Revoke an invitation: its link works no more (administrators)',
        description: 'Needs a session in which a credential was given in the last ten minutes.',
        tags: ['Users'],
        protect: true,
        errors: ['FORBIDDEN', 'REAUTHENTICATION_REQUIRED', 'NOT_FOUND'],
      },
    })
    .input(z.object({ id: invitationId }))
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      if (!isUuid(id) || !(await ctx.accounts.revokeInvitation(ctx.session, id, callerOf(ctx)))) {
        throw new ServiceError('NOT_FOUND', { message: 'There is no such invitation' });
      }
      return answer('The invitation is revoked.');
    }),
};
