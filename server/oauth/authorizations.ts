/**
 * The decision about an authorization request: on the account page, with the account session. A request belongs to the
 * browser that began it, so that nobody can have another user answer it, or plant their own.
 */
import type { InteractionResults, Provider } from 'oidc-provider';
import { z } from 'zod';
import type { Session, Sessions } from '../accounts/sessions/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { ListedApplication } from '../applications/index.ts';
import { ServiceError } from '../errors.ts';
import { hashOf } from '../lib/random-token.ts';
import type { Grants } from './grants.ts';
import { wordsIn } from './grants.ts';
import { requestDetails } from './policy.ts';

const requestParameters = z.object({
  client_id: z.string(),
  scope: z.string().optional(),
  resource: z.union([z.string(), z.array(z.string())]).optional(),
  prompt: z.string().optional(),
  max_age: z.coerce.number().optional(),
  acr_values: z.string().optional(),
});

/** The value of `acr_values` and `acr` for a login by a passkey or with a second factor. */
export const MULTI_FACTOR = 'mfa';
/** RFC 9470: the user cannot reach the level without being asked. */
const UNMET = 'unmet_authentication_requirements';

/** What the page does next: go to a location, or ask the user. */
export type NextStep =
  | { step: 'continue'; location: string }
  | { step: 'login' }
  | (Question & { step: 'second-factor' })
  | (Question & { step: 'consent'; scopes: string[] });

/** The user is asked about an application. */
interface Question {
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

interface Parts {
  provider(): Promise<Provider>;
  grants: Grants;
  sessions: Pick<Sessions, 'authentication'>;
  findApplication(id: string): Promise<ListedApplication>;
}

export const createAuthorizations = ({ provider, grants, sessions, findApplication }: Parts) => {
  /** Undefined if it has expired, or another browser began it. */
  const find = async (id: string, browser: string) => {
    const interaction = await (await provider()).Interaction.find(id);
    if (!interaction) return undefined;
    const details = requestDetails.parse(interaction.prompt.details);
    return details.browser === hashOf(browser) ? { interaction, details } : undefined;
  };
  type Found = NonNullable<Awaited<ReturnType<typeof find>>>;

  const finish = async ({ interaction }: Found, result: InteractionResults): Promise<NextStep> => {
    interaction.result = result;
    await interaction.persist();
    return { step: 'continue', location: interaction.returnTo };
  };

  /** How the user authenticated; undefined if the request wants a later login, or another user. */
  const authenticationOf = async ({ interaction, details }: Found, session: Session) => {
    const { prompt, max_age: maxAge } = requestParameters.parse(interaction.params);
    const known = session.id === undefined ? undefined : await sessions.authentication(session.id);
    if (known === undefined || (details.subject !== undefined && details.subject !== session.user.id)) return undefined;
    const age = wordsIn(prompt).includes('login') ? 0 : maxAge;
    return age === undefined || known.at >= (interaction.iat - age) * 1000 ? known : undefined;
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
      if (!found) throw new ServiceError('NOT_FOUND', { message: 'This login request has expired' });
      const { isSilent } = found.details;
      const known = session ? await authenticationOf(found, session) : undefined;
      if (!session || session.id === undefined || known === undefined)
        return isSilent ? finish(found, { error: 'login_required' }) : { step: 'login' };

      const { user } = session;
      const parameters = requestParameters.parse(found.interaction.params);
      const { client_id: clientId, scope, resource, prompt, acr_values: levels } = parameters;
      const application = await findApplication(clientId);
      const { name, logoUrl } = application;
      const question: Question = { application: { name, logoUrl }, userId: user.id, email: user.email };
      const resources = [resource ?? []].flat();
      const request = { user, application, scopes: wordsIn(scope), resources };
      const isAnswered = answer.isAllowed !== undefined && answer.userId === user.id;
      if (isAnswered && answer.isAllowed === false) return finish(found, { error: 'access_denied' });
      if (wordsIn(levels).includes(MULTI_FACTOR) && !known.isMultiFactor)
        return isSilent ? finish(found, { error: UNMET }) : { step: 'second-factor', ...question };
      if (!isAnswered) {
        const isWanted = wordsIn(prompt).includes('consent') || !(await grants.hasConsent(request));
        if (isWanted && !application.trusted) {
          if (isSilent) return finish(found, { error: 'consent_required' });
          return { step: 'consent', ...question, scopes: request.scopes };
        }
      }
      const grantId = await grants.save({ ...request, sessionId: session.id }, caller);
      const acr = known.isMultiFactor ? MULTI_FACTOR : undefined;
      const login = { accountId: user.id, ts: Math.floor(known.at / 1000), remember: false, acr };
      return finish(found, { login, consent: { grantId } });
    },
  };
};

export type Authorizations = ReturnType<typeof createAuthorizations>;
