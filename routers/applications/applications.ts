import { validate as isUuid } from 'uuid';
import { z } from 'zod';
import { applicationKinds, tokenFormats } from '../../entities/index.ts';
import { isWebAddress, rule, shortText } from '../../server/accounts/users/index.ts';
import { type ListedApplication, publicKey } from '../../server/applications/index.ts';
import { ServiceError } from '../../server/errors.ts';
import { MAX_APPLICATIONS } from '../../server/shared/receivers.ts';
import { administratorsMeta } from '../administrators-meta.ts';
import { answer, done } from '../schemas/done.ts';
import * as fields from '../schemas/fields.ts';
import { toUnixSeconds, unixSeconds } from '../schemas/unix-seconds.ts';
import { administratorOf, adminProcedure, recentAdminProcedure, router } from '../trpc.ts';

const applicationId = z.string().meta({
  example: '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c',
  description: 'The `client_id`',
});

const ofApplication = z.object({
  // A malformed id matches nothing.
  id: applicationId.refine((text) => {
    if (!isUuid(text)) throw new ServiceError('NOT_FOUND', { message: 'There is no such application' });
    return true;
  }),
});

/** An absolute URI without a fragment (RFC 8707 section 2). */
const resource = shortText(500).refine(
  (text) => /^[!-~]+$/.test(text) && !text.includes('#') && URL.canParse(text),
  rule('invalid_resource', 'Must be an absolute URI without a fragment'),
);

/** RFC 6749 section 3.3. */
const scope = shortText(64).regex(/^[!#-[\]-~]+$/, 'Must be a scope of RFC 6749');

const kind = z.enum(applicationKinds).meta({
  description:
    '`web` has a server and a secret, `browser` runs in a page, `native` on a device with a browser, `device` on one without, `service` acts for itself',
});

const addresses = z.array(z.string().max(500)).max(20);

const given = {
  name: fields.name,
  redirectUris: addresses.meta({
    description:
      'Compared exactly. https; for `native` also http://127.0.0.1 and http://[::1] with any port, or a scheme such as com.example.app:',
    example: ['https://shop.example.com/callback'],
  }),
  postLogoutRedirectUris: addresses.meta({
    description: 'Where the browser may go after a logout. Compared exactly, the port too; the rules of `redirectUris`',
    example: ['https://shop.example.com/goodbye'],
  }),
  resources: z
    .array(resource)
    .max(20)
    .meta({ description: 'APIs that it may ask access tokens for', example: ['https://api.example.com'] }),
  scopes: z
    .array(scope)
    .max(50)
    .meta({
      description: '`openid`, `profile`, `email` and `offline_access`, or scopes of its resources',
      example: ['openid', 'profile', 'email'],
    }),
  tokenFormat: z
    .enum(tokenFormats)
    .meta({ description: 'Access tokens for its resources: `jwt`, or `opaque` for introspection' }),
  trusted: z.boolean().meta({ description: 'Users are not asked for consent' }),
  logoUrl: z.string().refine(isWebAddress, rule('invalid_url', 'Must be an http or https URL')).nullable(),
  backchannelLogoutUri: z.string().max(500).nullable().meta({
    description: 'Where the application is told that logins at it have ended (OpenID Connect Back-Channel Logout)',
    example: 'https://shop.example.com/logged-out',
  }),
  publicKeys: z.array(z.looseObject(publicKey.shape)).max(5).meta({
    description:
      'Instead of a secret, for `web` and `service`: it identifies itself by `private_key_jwt` (RFC 7523). From then on no secret is accepted',
  }),
};

const application = z
  .object({
    id: applicationId,
    name: z.string(),
    kind,
    redirectUris: z.array(z.string()),
    postLogoutRedirectUris: z.array(z.string()),
    resources: z.array(z.string()),
    scopes: z.array(z.string()),
    tokenFormat: given.tokenFormat,
    trusted: given.trusted,
    logoUrl: z.string().nullable(),
    backchannelLogoutUri: z.string().nullable(),
    publicKeys: z.array(publicKey),
    enabled: z.boolean(),
    createdAt: unixSeconds,
  })
  .meta({ id: 'Application' });

const toShown = ({ disabledBy, createdAt, ...row }: ListedApplication) => ({
  ...row,
  enabled: disabledBy === null,
  createdAt: toUnixSeconds(createdAt),
});

const { read, change } = administratorsMeta('Applications');

/** Applications whose users log in here, for administrators. */
export const applications = router({
  list: adminProcedure
    .meta(read('/api/applications', 'All applications'))
    .output(z.object({ data: z.array(application).meta({ description: `Oldest first; at most ${MAX_APPLICATIONS}` }) }))
    .query(async ({ ctx }) => ({ data: (await ctx.applications.list()).map(toShown) })),

  get: adminProcedure
    .meta(read('/api/applications/{id}', 'One application', ['NOT_FOUND']))
    .input(ofApplication)
    .output(z.object({ application }))
    .query(async ({ ctx, input: { id } }) => ({ application: toShown(await ctx.applications.get(id)) })),

  create: recentAdminProcedure
    .meta(
      change('POST', '/api/applications', {
        summary: 'Add an application',
        description: `The secret of a \`web\` or \`service\` application without \`publicKeys\` is returned only here. TOO_MANY_APPLICATIONS: there are ${MAX_APPLICATIONS}.`,
        status: 201,
        errors: ['VALIDATION_FAILED', 'TOO_MANY_APPLICATIONS'],
      }),
    )
    .input(
      z.object({
        ...given,
        kind,
        redirectUris: given.redirectUris.default([]),
        postLogoutRedirectUris: given.postLogoutRedirectUris.default([]),
        resources: given.resources.default([]),
        tokenFormat: given.tokenFormat.default('jwt'),
        trusted: given.trusted.default(false),
        logoUrl: given.logoUrl.default(null),
        backchannelLogoutUri: given.backchannelLogoutUri.default(null),
        publicKeys: given.publicKeys.default([]),
      }),
    )
    .output(z.object({ application, secret: z.string().optional() }))
    .mutation(async ({ ctx, input }) => {
      const created = await ctx.applications.create(input, administratorOf(ctx));
      return {
        application: toShown(created.application),
        ...(created.secret !== undefined && { secret: created.secret }),
      };
    }),

  update: recentAdminProcedure
    .meta(
      change('PUT', '/api/applications/{id}', {
        summary: 'Change an application',
        description: 'Only what is sent changes. A disabled application logs nobody in, and its tokens are void.',
        errors: ['VALIDATION_FAILED', 'NOT_FOUND'],
      }),
    )
    .input(ofApplication.extend(z.object({ ...given, enabled: z.boolean() }).partial().shape))
    .output(z.object({ application }))
    .mutation(async ({ ctx, input: { id, ...sent } }) => ({
      application: toShown(await ctx.applications.update(id, sent, administratorOf(ctx))),
    })),

  delete: recentAdminProcedure
    .meta(
      change('DELETE', '/api/applications/{id}', {
        summary: 'Remove an application and all access that users gave it',
        errors: ['NOT_FOUND'],
      }),
    )
    .input(ofApplication)
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.applications.remove(id, administratorOf(ctx));
      return answer('The application is removed.');
    }),

  rotateSecret: recentAdminProcedure
    .meta(
      change('POST', '/api/applications/{id}/secret', {
        summary: 'A new secret',
        description: 'The former secret is accepted too for 24 hours. The new one is returned only here.',
        errors: ['NOT_FOUND'],
      }),
    )
    .input(ofApplication)
    .output(z.object({ secret: z.string(), formerUntil: unixSeconds }))
    .mutation(async ({ ctx, input: { id } }) => {
      const { secret, formerUntil } = await ctx.applications.rotateSecret(id, administratorOf(ctx));
      return { secret, formerUntil: toUnixSeconds(formerUntil) };
    }),
});
