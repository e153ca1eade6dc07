import { z } from 'zod';
import { type FlowEnd, type FlowPurpose, flowPurposes } from '../../server/accounts/providers/index.ts';
import { type ErrorCode, ServiceError } from '../../server/errors.ts';
import { pagePaths, sessionPaths } from '../../server/shared/page-paths.ts';
import type { Context } from '../context.ts';
import { admitReturn, returnTo as returnToInput, storedReturn } from '../return-to.ts';
import { currentSession, isRecent, loginRequest, publicProcedure, router } from '../trpc.ts';
import { setLogin } from './login-answer.ts';

/** The next location of the browser: a fixed page, the provider's page, or an allowed `returnTo`. */
const redirect = z.object({ location: z.string().meta({ description: 'The Location of the redirect' }) });

/** The pages of each purpose: after success, and for the cause of a failure. */
const pages: Record<FlowPurpose, { done: string; failed: string }> = {
  login: { done: pagePaths.dashboard, failed: pagePaths.logIn },
  restore: { done: `${pagePaths.dashboard}?notice=restored`, failed: pagePaths.logIn },
  link: { done: `${pagePaths.security}?notice=linked`, failed: pagePaths.security },
  reauthenticate: { done: `${pagePaths.security}?notice=confirmed`, failed: pagePaths.security },
};

const ALREADY_LINKED = `${pagePaths.security}?notice=already-linked`;

/** The query parameter of each purpose other than the login. */
const flags: Record<Exclude<FlowPurpose, 'login'>, string> = {
  restore: '`1`: restores the account if it was deleted, and logs in to it',
  link: '`1`: links the identity to the account of the session, in which a credential must have been given lately',
  reauthenticate: '`1`: the user of the session logs in at the provider anew, and so gives a credential again',
};

const failures = {
  cancelled: 'cancelled',
  failed: 'oauth_failed',
  'email-unverified': 'email_unverified',
  deleted: 'account_deleted',
  blocked: 'account_blocked',
  'no-account': 'account_removed',
  'not-linked': 'identity_not_linked',
  'registration-closed': 'registration_closed',
  'identity-taken': 'identity_taken',
  'identity-mismatch': 'identity_mismatch',
  'not-fresh': 'login_not_fresh',
  'proves-no-login': 'login_not_fresh',
} as const;

const SESSION_ENDED = 'session_ended';
const REAUTHENTICATION_REQUIRED = 'reauthentication_required';

/** This page has the buttons for flows that a link alone must not begin. */
const BEGIN_HERE = `${pagePaths.security}?error=${REAUTHENTICATION_REQUIRED}`;

/** Every cause that pages receive as `error`. */
export const flowErrors: ReadonlySet<string> = new Set([
  ...Object.values(failures),
  SESSION_ENDED,
  REAUTHENTICATION_REQUIRED,
]);

const failureAt = (purpose: FlowPurpose, failure: keyof typeof failures, page: string = pages[purpose].failed) =>
  `${page}?error=${failures[failure]}`;

function locationOf(ctx: Context, { purpose, page, result, invitedTo, ...end }: FlowEnd): string {
  const returnTo = end.returnTo ?? storedReturn(ctx, invitedTo).returnTo;
  const pageWithReturn = (location: string) => withReturn(location, returnTo);
  if (result === 'verification-sent') return pageWithReturn(pagePaths.verifyEmail);
  if (result === 'second-factor') return pageWithReturn(pagePaths.secondFactor);
  if (result === 'session-ended') return pageWithReturn(`${pagePaths.logIn}?error=${SESSION_ENDED}`);
  if (result === 'already-linked') return returnTo ?? ALREADY_LINKED;
  const isDone = result === 'logged-in' || result === 'linked' || result === 'reauthenticated';
  if (!isDone) return pageWithReturn(failureAt(purpose, result, page));
  if (returnTo !== undefined) return returnTo;
  if (page !== undefined) return `${page}?notice=confirmed`;
  return purpose === 'login' ? ctx.endOfLogin() : pages[purpose].done;
}

/** One of our pages, which continues to `returnTo`. */
function withReturn(location: string, returnTo: string | undefined): string {
  if (returnTo === undefined) return location;
  return `${location}${location.includes('?') ? '&' : '?'}${new URLSearchParams({ returnTo })}`;
}

/** One string, else undefined: a repeated parameter is not a valid response of a provider. */
const parameter = z
  .unknown()
  .transform((value) => (typeof value === 'string' && value.length <= 4096 ? value : undefined))
  .meta({ type: 'string' })
  .optional();

/** In the path over REST. Optional for a typed client of a service with one provider. */
const provider = z.string().default('').meta({ description: 'The name of the provider; without it, the first' });

const providerOf = ({ accounts }: Context, name = ''): string => name || (accounts.providers.names[0] ?? '');

const flag = (purpose: keyof typeof flags) => z.literal('1').optional().meta({ description: flags[purpose] });

const page = z
  .enum(sessionPaths)
  .optional()
  .meta({ description: 'With `reauthenticate`: the account page to which the browser finally returns' });

const returnTo = returnToInput(
  'The final location of the browser, instead of an account page; after a failure the page that reports it gets this value',
);

function purposeOf(given: { [Purpose in keyof typeof flags]?: '1' | undefined }): FlowPurpose {
  const named = (Object.keys(flags) as (keyof typeof flags)[]).filter((purpose) => given[purpose] !== undefined);
  if (named.length > 1)
    throw new ServiceError('VALIDATION_FAILED', { message: `Only one of ${named.join(', ')} can be given` });
  return named[0] ?? 'login';
}

/** The refusal of a navigation redirects to one of our pages. */
const refusal = (ctx: Context, code: ErrorCode, location: string, returnTo: string | undefined) =>
  new ServiceError(code, ctx.isNavigation() ? { location: withReturn(location, returnTo) } : undefined);

/** The session that a flow concerns. */
async function ownerOf(ctx: Context, need: 'recent' | 'any', returnTo: string | undefined) {
  const session = await currentSession(ctx);
  if (session?.id === undefined) throw refusal(ctx, 'UNAUTHENTICATED', pagePaths.logIn, returnTo);
  if (session.actor || (need === 'recent' && !(await isRecent(ctx, session)))) {
    throw refusal(ctx, 'REAUTHENTICATION_REQUIRED', BEGIN_HERE, returnTo);
  }
  return { userId: session.user.id, sessionId: session.id, epoch: session.user.sessionEpoch };
}

/** Login, linking and reauthentication through identity providers: interface.md section 5.7. */
export const idp = router({
  start: publicProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/auth/{provider}',
        parameterFrom: 'identityProviders',
        summary: 'Log in through an identity provider, link an identity, or reauthenticate',
        description:
          'Sends the browser to the provider, with a state cookie that lasts ten minutes. The callback is bound to this browser, by the cookie `auth_browser`. Refused with ORIGIN_MISMATCH unless one of our own pages sent the browser: purposes other than a login, and a start that another site loads in a frame or as a part of its page. `link` and `reauthenticate` need a session, to which the callback is bound too.',
        tags: ['Authentication'],
        protect: false,
        setsCookie: true,
        redirect: `The provider's authorization page; where it cannot be asked ${failureAt('login', 'failed')}, and where it does not let users prove a login ${failureAt('reauthenticate', 'proves-no-login')}. A navigation that is refused with 401 or 403 leads to ${pagePaths.logIn} or ${pagePaths.security}`,
        errors: [
          'UNAUTHENTICATED',
          'OTHER_USER',
          'REAUTHENTICATION_REQUIRED',
          'ORIGIN_MISMATCH',
          'NOT_FOUND',
          'RATE_LIMITED',
        ],
      },
    })
    .input(
      z
        .object({
          provider,
          restore: flag('restore'),
          link: flag('link'),
          reauthenticate: flag('reauthenticate'),
          page,
          returnTo,
        })
        .optional(),
    )
    .output(redirect)
    .query(async ({ ctx, input: { provider, page, ...given } = { provider: '' } }) => {
      const name = providerOf(ctx, provider);
      const purpose = purposeOf(given);
      const returnTo = admitReturn(ctx, given.returnTo);
      const { session } = flowPurposes[purpose];
      const isAskedFor = ctx.isAskedOnOurPages();
      if (purpose !== 'login' && !isAskedFor) {
        throw refusal(ctx, 'ORIGIN_MISMATCH', purpose === 'restore' ? pagePaths.logIn : BEGIN_HERE, returnTo);
      }
      // Its visitor does not see it, but each start counts for the address.
      if (!isAskedFor && !ctx.isPage()) throw new ServiceError('ORIGIN_MISMATCH');
      const owner = session && (await ownerOf(ctx, session, returnTo));
      const begun = await ctx.accounts.providers.login.begin({
        provider: name,
        purpose,
        owner,
        page: purpose === 'reauthenticate' ? page : undefined,
        returnTo,
        browser: ctx.browser(),
        isAskedFor,
        ownUrl: ctx.ownUrl(),
        clientAddress: ctx.clientAddress(),
      });
      if (begun.result !== 'begun') return { location: withReturn(failureAt(purpose, begun.result, page), returnTo) };
      ctx.cookies.setBrowser(ctx.browser());
      ctx.cookies.setState(name, begun.state);
      return { location: begun.url };
    }),

  callback: publicProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/auth/{provider}/callback',
        parameterFrom: 'identityProviders',
        summary: 'The callback of an identity provider',
        description:
          'A login sets the session cookie `auth_session` and ends the session of the request. For a user with an authenticator app it sets `auth_pending`, unless the provider is trusted to require a second factor. A linked identity or a reauthentication changes the session in which it began. Over /trpc an identity of another account is IDENTITY_TAKEN, and a first login that is not admitted REGISTRATION_CLOSED.',
        tags: ['Authentication'],
        protect: false,
        setsCookie: true,
        redirect: `${[...Object.values(pages).map(({ done }) => done), ALREADY_LINKED].join(', ')}, ${pagePaths.secondFactor}, ${pagePaths.verifyEmail}, or a page with the cause as \`error\`; where the flow began with \`returnTo\`, that in place of the first five, and as a parameter of the others`,
        errors: ['INVALID_STATE', 'NOT_FOUND'],
      },
    })
    .input(z.object({ provider, code: parameter, state: parameter, iss: parameter, error: parameter }))
    .output(redirect)
    .query(async ({ ctx, input }) => {
      const name = providerOf(ctx, input.provider);
      const end = await ctx.accounts.providers.login.finish({
        provider: name,
        code: input.code,
        state: input.state,
        iss: input.iss,
        error: input.error,
        cookieState: ctx.stateCookie(name),
        request: loginRequest(ctx),
        browser: ctx.browser(),
      });
      // Any page can send a browser here with a refusal: that must not end a login that the browser itself began.
      if (end.result !== 'cancelled' || end.wasOpen) ctx.cookies.clearState(name);
      if (end.result === 'logged-in') setLogin(ctx, end.login);
      if (end.result === 'second-factor') ctx.cookies.setPending(end.pending.token);
      if (end.result === 'verification-sent') ctx.cookies.setBrowser(ctx.browser());
      const location = locationOf(ctx, end);
      if (end.result === 'identity-taken') throw new ServiceError('IDENTITY_TAKEN', { location });
      if (end.result === 'registration-closed') throw new ServiceError('REGISTRATION_CLOSED', { location });
      return { location };
    }),
});
