import { z } from 'zod';
import { ServiceError } from '../server/errors.ts';
import { answer, done } from './done.ts';
import * as fields from './fields.ts';
import { callerOf, recentProcedure, router, sessionProcedure } from './trpc.ts';
import { toUnixSeconds, unixSeconds } from './unix-seconds.ts';

const recoveryCodeList = z.array(z.string()).meta({
  description: 'Ten codes, each of which completes one login in place of a code of the app. They are not shown again',
  example: ['7n0q-v3kd-9w2h-x5ta'],
});

export const totp = router({
  status: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/totp',
        summary: 'Whether the logged-in user has an authenticator app, and how many recovery codes are left',
        tags: ['Second factors'],
        protect: true,
        errors: [],
      },
    })
    .output(
      z.object({
        enabled: z.boolean().meta({ description: 'Whether a login asks for a second factor' }),
        enabledAt: unixSeconds.optional(),
        recoveryCodesLeft: z.int().meta({ description: 'Unused ones', example: 10 }),
      }),
    )
    .query(async ({ ctx }) => {
      const { enabledAt, recoveryCodesLeft } = await ctx.accounts.totpStatus(ctx.session.user);
      const isEnabled = enabledAt !== undefined;
      return { enabled: isEnabled, ...(isEnabled && { enabledAt: toUnixSeconds(enabledAt) }), recoveryCodesLeft };
    }),

  begin: recentProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/totp/options',
        summary: 'A new secret for an authenticator app',
        description:
          'It waits in this session for ten minutes until POST /api/totp confirms it with a code, in place of an earlier one that waits. FORBIDDEN while a login method is not proven: set a new password by a mailed link first.',
        tags: ['Second factors'],
        protect: true,
        errors: ['FORBIDDEN', 'REAUTHENTICATION_REQUIRED'],
      },
    })
    .output(
      z.object({
        secret: z.string().meta({ description: 'In base32', example: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' }),
        uri: z.string().meta({ description: 'The same for an app, with the names that it shows: otpauth://totp/…' }),
        qr: z.string().meta({ description: '`uri` as a QR code: an SVG image' }),
      }),
    )
    .mutation(({ ctx }) => ctx.accounts.beginTotp(ctx.session)),

  enable: recentProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/totp',
        summary: 'Ask for the codes of an authenticator app at every login',
        description:
          'Takes a code for the secret that waits. Replaces an earlier app, and the recovery codes, and mails the user. Ends all other sessions; this one goes on under a new token, in the session cookie that is set.',
        tags: ['Second factors'],
        protect: true,
        setsCookie: true,
        errors: ['VALIDATION_FAILED', 'INVALID_CODE', 'FORBIDDEN', 'REAUTHENTICATION_REQUIRED'],
      },
    })
    .input(z.object({ code: fields.code }))
    .output(done.extend({ recoveryCodes: recoveryCodeList }))
    .mutation(async ({ ctx, input }) => {
      const { session, sessionToken: token } = ctx;
      if (token === undefined) throw new ServiceError('UNAUTHENTICATED');
      const { login, recoveryCodes } = await ctx.accounts.enableTotp({ session, token }, input.code, callerOf(ctx));
      ctx.cookies.setSession(login);
      return {
        ...answer('From now on, logging in takes a code of your app. Every other device is logged out.'),
        recoveryCodes,
      };
    }),

  disable: recentProcedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/api/totp',
        summary: 'Remove the authenticator app and the recovery codes',
        description: 'Mails the user.',
        tags: ['Second factors'],
        protect: true,
        errors: ['REAUTHENTICATION_REQUIRED', 'NOT_FOUND'],
      },
    })
    .output(done)
    .mutation(async ({ ctx }) => {
      await ctx.accounts.disableTotp(ctx.session, callerOf(ctx));
      return answer('Logging in takes no code any more.');
    }),
});

export const recoveryCodes = router({
  renew: recentProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/recovery-codes',
        summary: 'New recovery codes, in place of the former ones',
        description: 'NOT_FOUND without an authenticator app.',
        tags: ['Second factors'],
        protect: true,
        errors: ['REAUTHENTICATION_REQUIRED', 'NOT_FOUND'],
      },
    })
    .output(z.object({ recoveryCodes: recoveryCodeList }))
    .mutation(async ({ ctx }) => ({
      recoveryCodes: await ctx.accounts.renewRecoveryCodes(ctx.session, callerOf(ctx)),
    })),
});
