import { validate as isUuid } from 'uuid';
import { z } from 'zod';
import type { ListedInvitation } from '../../server/accounts/mail/index.ts';
import { ServiceError } from '../../server/errors.ts';
import { admitReturn, returnToOfLink } from '../return-to.ts';
import { answer, done } from '../schemas/done.ts';
import * as fields from '../schemas/fields.ts';
import { MAX_PAGE, pageOf, uuidPage } from '../schemas/page.ts';
import { toUnixSeconds, unixSeconds } from '../schemas/unix-seconds.ts';
import { adminProcedure, callerOf, recentAdminProcedure } from '../trpc.ts';

const invitationId = z.string().meta({ example: '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c' });

const listed = z.object({
  id: invitationId,
  email: z.string(),
  invitedBy: z
    .string()
    .optional()
    .meta({ description: 'The id of the administrator; absent for an invitation by the operator' }),
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

/** Invitations by administrators to create an account: procedures of the router `users`. */
export const invitationProcedures = {
  invite: recentAdminProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/users/invitations',
        summary: 'Invite an address to create an account (administrators)',
        description:
          'Mails a link that works once, for 7 days, with this address only; it replaces an older one. REGISTRATION_CLOSED if registration is closed; EMAIL_TAKEN if an account has the address, or had it before an email change that can still be undone. Requires a session with a credential given in the last ten minutes.',
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
        language: fields.language
          .optional()
          .meta({ description: 'The language of the mail; by default that of the browser' }),
        returnTo: returnToOfLink,
      }),
    )
    .output(z.object({ success: z.literal(true), invitation: listed }))
    .mutation(async ({ ctx, input: { email, language, returnTo } }) => {
      const invitation = await ctx.accounts.lifecycle.invitations.invite(
        ctx.session,
        { email, language, returnTo: admitReturn(ctx, returnTo) },
        callerOf(ctx),
      );
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
    .input(uuidPage.optional())
    .output(pageOf(listed))
    .query(async ({ ctx, input: { limit = MAX_PAGE, cursor } = {} }) => {
      const { invitations, ...next } = await ctx.accounts.lifecycle.invitations.listInvitations({ limit, cursor });
      return { data: invitations.map(toListed), ...next };
    }),

  revokeInvitation: recentAdminProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/users/invitations/revoke',
        summary: 'Revoke an invitation: its link stops working (administrators)',
        description: 'Requires a session with a credential given in the last ten minutes.',
        tags: ['Users'],
        protect: true,
        errors: ['FORBIDDEN', 'REAUTHENTICATION_REQUIRED', 'NOT_FOUND'],
      },
    })
    .input(z.object({ id: invitationId }))
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      if (!isUuid(id) || !(await ctx.accounts.lifecycle.invitations.revokeInvitation(ctx.session, id, callerOf(ctx)))) {
        throw new ServiceError('NOT_FOUND', { message: 'Invitation not found' });
      }
      return answer('The invitation was revoked.');
    }),
};
