/** The user's side of the device authorization grant (RFC 8628 section 3.3), with the account session. */
import type { Session, Sessions } from '../accounts/sessions/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { ListedApplication } from '../applications/index.ts';
import { ServiceError } from '../errors.ts';
import type { Limits } from '../limits/index.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import {
  type Answer,
  authenticationOf,
  type ConsentStep,
  lacksFactor,
  levelOf,
  type Question,
  requestParameters,
} from './authorizations.ts';
import { createDeviceCodes } from './device-codes.ts';
import { type Grants, wordsIn } from './grants.ts';
import { defaultScopes } from './scopes.ts';
import type { ShownConsents } from './shown-consents.ts';

/** What the page does next. `login`: the device wants a later login. */
type DeviceStep =
  | { step: 'login' | 'done' }
  | ((ConsentStep | (Question & { step: 'second-factor' })) & { userCode: string });

const unknownCode = () => new ServiceError('NOT_FOUND', { message: 'This code is unknown or has expired' });

/** As it is stored: users may type it in lower case, and with or without the dash. */
const normalize = (userCode: string): string => userCode.toUpperCase().replace(/[^A-Z]/g, '');

interface Parts {
  store: KeyValueStore;
  grants: Pick<Grants, 'save'>;
  sessions: Pick<Sessions, 'authentication'>;
  consents: ShownConsents;
  limits: Pick<Limits, 'attempt'>;
  findApplication(id: string): Promise<ListedApplication>;
}

export const createDevices = ({ store, grants, sessions, consents, limits, findApplication }: Parts) => {
  const codes = createDeviceCodes(store);

  /** Wrong codes count for the user and for the address; both are counted before the code is looked up. */
  const find = async (userCode: string, userId: string, { clientAddress }: Caller) => {
    const lookUp = async (...refunds: (() => Promise<void>)[]) => {
      const payload = await codes.findAsked(userCode);
      if (!payload?.clientId) throw unknownCode();
      const { clientId, iat = 0, params } = payload;
      const found = { clientId, request: { iat, params: requestParameters.parse(params) } };
      await Promise.all(refunds.map((refund) => refund()));
      return found;
    };
    return limits.attempt('code', `device:${userId}`, (refundUser) =>
      limits.attempt('token', clientAddress, (refundAddress) => lookUp(refundUser, refundAddress)),
    );
  };

  return {
    /** NOT_FOUND for a code that has expired or is answered, RATE_LIMITED past too many of them. */
    async answerDevice(typed: string, session: Session, answer: Answer, caller: Caller): Promise<DeviceStep> {
      const userCode = normalize(typed);
      const { user } = session;
      const { clientId, request } = await find(userCode, user.id, caller);
      const application = await findApplication(clientId);
      if (application.disabledBy !== null || session.id === undefined) throw unknownCode();
      const known = await authenticationOf(sessions, request, session);
      if (known === undefined) return { step: 'login' };

      const { params } = request;
      const resources = [params.resource ?? []].flat();
      const scopes =
        params.scope === undefined ? defaultScopes(application.scopes, params.resource) : wordsIn(params.scope);
      const { name, logoUrl } = application;
      const question = {
        application: { name, logoUrl },
        userId: user.id,
        email: user.email,
        userCode: `${userCode.slice(0, 4)}-${userCode.slice(4)}`,
      };
      const isOwn = answer.userId === user.id;
      const isDenied = isOwn && answer.isAllowed === false;
      if (!isDenied && lacksFactor(params, known)) return { step: 'second-factor', ...question };
      const consent = { step: 'consent', ...question, scopes } as const;
      const isAllowed = isOwn && answer.isAllowed === true && (await consents.isShown(userCode, consent));
      if (!isDenied && !isAllowed) return consents.show(userCode, consent);
      const finish = async (decide: Parameters<typeof codes.answer>[1]): Promise<DeviceStep> => {
        if (!(await codes.answer(userCode, decide))) throw unknownCode();
        return { step: 'done' };
      };
      if (isDenied) return finish(async () => ({ error: 'access_denied' }));
      const allowed = { user, application, scopes, resources, sessionId: session.id, isDevice: true };
      const wantsTime = params.max_age !== undefined || wordsIn(params.prompt).includes('login');
      const claims = {
        ...(wantsTime && { auth_time: { essential: true } }),
        ...(params.acr_values !== undefined && { acr: { values: wordsIn(params.acr_values) } }),
      };
      return finish(async () => ({
        accountId: user.id,
        grantId: await grants.save(allowed, caller),
        scope: scopes.join(' '),
        authTime: Math.floor(known.at / 1000),
        acr: levelOf(known),
        ...(resources.length > 0 && { resource: resources.length === 1 ? resources[0] : resources }),
        ...(Object.keys(claims).length > 0 && { claims: { id_token: claims } }),
      }));
    },
  };
};
