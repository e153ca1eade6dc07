import { z } from 'zod';
import { setRotated } from '../auth/login-answer.ts';
import { answer, done } from '../schemas/done.ts';
import * as fields from '../schemas/fields.ts';
import { toUnixSeconds, unixSeconds } from '../schemas/unix-seconds.ts';
import { callerOf, deviceRequest, ownSession, recentProcedure, router, sessionProcedure } from '../trpc.ts';

const recoveryCodeList = z.array(z.string()).meta({
  description: 'Ten codes. Each completes one login instead of a code from the app. They are not shown again',
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
        enabled: z.boolean().meta({ description: 'Whether a login requires a second factor' }),
        enabledAt: unixSeconds.optional(),
        recoveryCodesLeft: z.int().meta({ description: 'Unused recovery codes', example: 10 }),
      }),
    )
    .query(async ({ ctx }) => {
      const { enabledAt, recoveryCodesLeft } = await ctx.accounts.credentials.totp.totpStatus(ctx.session.user);
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
          'It is pending in this session for ten minutes until POST /api/totp confirms it with a code; it replaces an earlier pending one. FORBIDDEN while a login method is not proven: set a new password by a mailed link first. Limited per user.',
        tags: ['Second factors'],
        protect: true,
        errors: ['FORBIDDEN', 'REAUTHENTICATION_REQUIRED', 'RATE_LIMITED'],
      },
    })
    .output(
      z.object({
        secret: z.string().meta({ description: 'In base32', example: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' }),
        uri: z
          .string()
          .meta({ description: 'The same as a URI for apps, with the names that they show: otpauth://totp/…' }),
        qr: z.string().meta({ description: '`uri` as a QR code: an SVG image' }),
      }),
    )
    .mutation(({ ctx }) => ctx.accounts.credentials.totp.beginTotp(ctx.session)),

  enable: recentProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/totp',
        summary: 'Require the codes of an authenticator app at every login',
        description:
          'Takes a code for the pending secret. Replaces an earlier app, and the recovery codes, and mails the user. Ends all other sessions; this one continues with a new token, set as session cookie. Only this device stays known.',
        tags: ['Second factors'],
        protect: true,
        setsCookie: true,
        errors: ['VALIDATION_FAILED', 'INVALID_CODE', 'FORBIDDEN', 'REAUTHENTICATION_REQUIRED', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ code: fields.code }))
    .output(done.extend({ recoveryCodes: recoveryCodeList }))
    .mutation(async ({ ctx, input }) => {
      const { login, recoveryCodes } = await ctx.accounts.credentials.totp.enableTotp(
        ownSession(ctx),
        input.code,
        deviceRequest(ctx),
      );
      setRotated(ctx, login);
      return {
        ...answer('Logging in now requires a code from your app. All other devices were logged out.'),
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
      await ctx.accounts.credentials.totp.disableTotp(ctx.session, callerOf(ctx));
      return answer('Logging in no longer requires a code.');
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
        errors: ['REAUTHENTICATION_REQUIRED', 'NOT_FOUND', 'RATE_LIMITED'],
      },
    })
    .output(z.object({ recoveryCodes: recoveryCodeList }))
    .mutation(async ({ ctx }) => ({
      recoveryCodes: await ctx.accounts.credentials.totp.renewRecoveryCodes(ctx.session, callerOf(ctx)),
    })),
});
