/**
 * The decision about an authorization request: on the account page, with the account session. A request belongs to the
 * browser that began it, so that nobody can have another user answer it, or plant their own.
 */
import type { InteractionResults, Provider } from 'oidc-provider';
import { z } from 'zod';
import type { Authentication, Session, Sessions } from '../accounts/sessions/index.ts';
import { isMailAddress } from '../accounts/users/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { ListedApplication } from '../applications/index.ts';
import { ServiceError } from '../errors.ts';
import { hashOf } from '../lib/random-token.ts';
import type { Grants } from './grants.ts';
import { wordsIn } from './grants.ts';
import { requestDetails } from './policy.ts';
import type { ShownConsents } from './shown-consents.ts';

export const requestParameters = z.object({
  client_id: z.string(),
  redirect_uri: z.string().optional(),
  scope: z.string().optional(),
  resource: z.union([z.string(), z.array(z.string())]).optional(),
  prompt: z.string().optional(),
  max_age: z.coerce.number().optional(),
  acr_values: z.string().optional(),
  login_hint: z.string().optional(),
});

/** The value of `acr_values` and `acr` for a login by a passkey or with a second factor. */
export const MULTI_FACTOR = 'mfa';
/** RFC 9470: the user cannot reach the level without being asked. */
const UNMET = 'unmet_authentication_requirements';

/** What the page does next: go to a location, or ask the user. */
type NextStep =
  | { step: 'continue'; location: string }
  | { step: 'login'; loginHint?: string }
  | (Question & { step: 'second-factor' })
  | ConsentStep;

export type ConsentStep = Question & { step: 'consent'; scopes: string[] };

/** The user is asked about an application. */
export interface Question {
  application: Pick<ListedApplication, 'name' | 'logoUrl'>;
  userId: string;
  email: string;
}

export interface Answer {
  /** Undefined until the user has answered. */
  isAllowed?: boolean | undefined;
  /** The user whom the page has asked: another tab may have logged in another one since. */
  userId?: string | undefined;
}

type Parameters = z.output<typeof requestParameters>;

/** How the user authenticated; undefined if the request wants a later login. */
export async function authenticationOf(
  sessions: Pick<Sessions, 'authentication'>,
  { params: { prompt, max_age: maxAge }, iat }: { params: Parameters; iat: number },
  { id }: Session,
): Promise<Authentication | undefined> {
  const known = id === undefined ? undefined : await sessions.authentication(id);
  const age = wordsIn(prompt).includes('login') ? 0 : maxAge;
  return known === undefined || age === undefined || known.at >= (iat - age) * 1000 ? known : undefined;
}

/** Whether the request wants a second factor, and the user has given none. */
export const lacksFactor = ({ acr_values: levels }: Parameters, { isMultiFactor }: Authentication): boolean =>
  !isMultiFactor && wordsIn(levels).includes(MULTI_FACTOR);

/** The value of the claim `acr`. */
export const levelOf = ({ isMultiFactor }: Authentication): string | undefined =>
  isMultiFactor ? MULTI_FACTOR : undefined;

/**
 * Any application on a device can listen to a loopback port, or claim a scheme: an earlier consent is not for it (RFC 8252
 * section 8.6).
 */
const mayBeAnother = ({ kind }: ListedApplication, { redirect_uri: redirect = '' }: Parameters): boolean =>
  kind === 'native' && !redirect.startsWith('https:');

/** The address of a `login_hint`, for the form; nobody has shown that it exists. */
const loginHintIn = ({ login_hint: hint }: Parameters) =>
  hint !== undefined && isMailAddress(hint) ? { loginHint: hint } : {};

const expired = () => new ServiceError('NOT_FOUND', { message: 'This login request has expired' });

interface Parts {
  isOn(): Promise<boolean>;
  provider(): Promise<Provider>;
  grants: Grants;
  sessions: Pick<Sessions, 'authentication'>;
  consents: ShownConsents;
  findApplication(id: string): Promise<ListedApplication>;
}

export const createAuthorizations = ({ isOn, provider, grants, sessions, consents, findApplication }: Parts) => {
  /** Undefined if it has expired, or another browser began it. */
  const find = async (id: string, browser: string) => {
    if (!(await isOn())) return undefined;
    const interaction = await (await provider()).Interaction.find(id);
    if (!interaction) return undefined;
    // The library asks again, without these details, if a grant has ended since the answer.
    const { data: details } = requestDetails.safeParse(interaction.prompt.details);
    return details?.browser === hashOf(browser) ? { interaction, details } : undefined;
  };
  type Found = NonNullable<Awaited<ReturnType<typeof find>>>;

  const finish = async ({ interaction }: Found, result: InteractionResults): Promise<NextStep> => {
    interaction.result = result;
    await interaction.persist();
    return { step: 'continue', location: interaction.returnTo };
  };

  return {
    isBegunBy: async (id: string, browser: string): Promise<boolean> => (await find(id, browser)) !== undefined,

    /** NOT_FOUND for a request that has expired, or that another browser began. */
    async proceed(
      id: string,
      { browser, session }: { browser: string; session: Session | null },
      answer: Answer,
      caller: Caller,
    ): Promise<NextStep> {
      const found = await find(id, browser);
      if (!found) throw expired();
      const { returnTo, result } = found.interaction;
      // One request makes one grant, for its user.
      const isOthers = result?.login !== undefined && result.login.accountId !== session?.user.id;
      if (isOthers) throw expired();
      if (result !== undefined) return { step: 'continue', location: returnTo };
      const { isSilent, subject } = found.details;
      const params = requestParameters.parse(found.interaction.params);
      const isWantedUser = session !== null && (subject === undefined || subject === session.user.id);
      const known = isWantedUser
        ? await authenticationOf(sessions, { params, iat: found.interaction.iat }, session)
        : undefined;
      if (!session || session.id === undefined || known === undefined)
        return isSilent ? finish(found, { error: 'login_required' }) : { step: 'login', ...loginHintIn(params) };

      const { user } = session;
      const { client_id: clientId, scope, resource, prompt } = params;
      const application = await findApplication(clientId);
      const { name, logoUrl } = application;
      const question: Question = { application: { name, logoUrl }, userId: user.id, email: user.email };
      const resources = [resource ?? []].flat();
      const request = { user, application, scopes: wordsIn(scope), resources };
      const isOwn = answer.userId === user.id;
      if (isOwn && answer.isAllowed === false) return finish(found, { error: 'access_denied' });
      if (lacksFactor(params, known))
        return isSilent ? finish(found, { error: UNMET }) : { step: 'second-factor', ...question };
      const consent: ConsentStep = { step: 'consent', ...question, scopes: request.scopes };
      const isAllowed = isOwn && answer.isAllowed === true && (await consents.isShown(id, consent));
      const mustAsk =
        !application.trusted &&
        !isAllowed &&
        (wordsIn(prompt).includes('consent') ||
          mayBeAnother(application, params) ||
          !(await grants.hasConsent(request)));
      if (mustAsk) return isSilent ? finish(found, { error: 'consent_required' }) : consents.show(id, consent);
      const grantId = await grants.save({ ...request, sessionId: session.id }, caller);
      const login = { accountId: user.id, ts: Math.floor(known.at / 1000), remember: false, acr: levelOf(known) };
      return finish(found, { login, consent: { grantId } });
    },
  };
};
