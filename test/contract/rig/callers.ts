import { expect } from 'vitest';
import { loadClient, procedureOf } from '../../rig/client/client.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import { expectDocumented } from './document.ts';

/** A reply, the same for both surfaces. `code` and `details` are those of an error; `data` is the output. */
export interface Reply {
  status: number;
  headers: Headers;
  /** Values of every Set-Cookie header. */
  setCookies: string[];
  message: string | undefined;
  code: string | undefined;
  details: Record<string, { message: string; rule: string }> | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: a black box: what is in it is for the test to say
  data: any;
}

export interface CallOptions {
  /** The session token to send as cookie. */
  session?: string | undefined;
  /** The browser cookie, as set by an answer. */
  browser?: string | undefined;
  /** The device cookie, as set by a login. */
  device?: string | undefined;
  /** An access key to send as bearer credential. */
  key?: string | undefined;
  /** The cookie of a pending second step. */
  pending?: string | undefined;
  /** The client address; a fresh one by default, so that tests do not use up each other's limits. */
  address?: string;
  headers?: Record<string, string>;
  /** Makes more headers for the request, by its method and address. */
  sign?: ((method: string, url: string) => Promise<Record<string, string>>) | undefined;
}

/** The answer of a proxy instead of the service. */
export class ForeignAnswer extends Error {
  readonly status: number;

  constructor({ status }: Response, body: string) {
    super(`not the service has answered ${status}: ${body.slice(0, 200)}`);
    this.status = status;
  }
}

/** REST by hand, or tRPC through the built client package. */
export type Surface = 'rest' | 'trpc';

/** Calls procedures by name over one surface. */
export type Call = (procedure: string, input?: unknown, options?: CallOptions) => Promise<Reply>;

/** interface.md section 4 and api.md, by procedure. */
export const paths: Record<string, [method: string, path: string]> = {
  'auth.register': ['POST', '/auth/register'],
  'auth.login': ['POST', '/auth/login'],
  'auth.beginPasskey': ['POST', '/auth/passkey/options'],
  'auth.finishPasskey': ['POST', '/auth/passkey'],
  'auth.beginEmailCode': ['POST', '/auth/email-code'],
  'auth.finishEmailCode': ['POST', '/auth/email-code/finish'],
  'auth.secondFactor': ['POST', '/auth/second-factor'],
  'auth.reauthenticate': ['POST', '/auth/reauthenticate'],
  'auth.logout': ['POST', '/auth/logout'],
  'auth.logoutAll': ['POST', '/auth/logout-all'],
  'auth.idp.start': ['GET', '/auth/{provider}'],
  'auth.idp.callback': ['GET', '/auth/{provider}/callback'],
  'auth.verifyEmail': ['POST', '/auth/verify-email'],
  'account.changePassword': ['POST', '/api/account/password'],
  'account.changeEmail': ['POST', '/api/account/email'],
  'account.confirmEmail': ['POST', '/auth/confirm-email'],
  'account.undoEmailChange': ['POST', '/auth/undo-email-change'],
  'account.notMe': ['POST', '/auth/not-me'],
  'account.delete': ['DELETE', '/api/account'],
  'account.restore': ['POST', '/auth/restore'],
  'account.export': ['GET', '/api/account/export'],
  'auth.resendVerification': ['POST', '/auth/resend-verification'],
  'auth.forgotPassword': ['POST', '/auth/forgot-password'],
  'auth.resetPassword': ['POST', '/auth/reset-password'],
  'sessions.list': ['GET', '/api/sessions'],
  'sessions.end': ['DELETE', '/api/sessions/{id}'],
  'activity.list': ['GET', '/api/activity'],
  'users.activity': ['GET', '/api/users/{id}/activity'],
  'identities.list': ['GET', '/api/identities'],
  'identities.unlink': ['DELETE', '/api/identities/{id}'],
  'passkeys.list': ['GET', '/api/passkeys'],
  'passkeys.beginRegistration': ['POST', '/api/passkeys/options'],
  'passkeys.finishRegistration': ['POST', '/api/passkeys'],
  'passkeys.rename': ['PUT', '/api/passkeys/{id}'],
  'passkeys.remove': ['DELETE', '/api/passkeys/{id}'],
  'keys.list': ['GET', '/api/keys'],
  'keys.create': ['POST', '/api/keys'],
  'keys.revoke': ['DELETE', '/api/keys/{id}'],
  'totp.status': ['GET', '/api/totp'],
  'totp.begin': ['POST', '/api/totp/options'],
  'totp.enable': ['POST', '/api/totp'],
  'totp.disable': ['DELETE', '/api/totp'],
  'recoveryCodes.renew': ['POST', '/api/recovery-codes'],
  'users.invite': ['POST', '/api/users/invitations'],
  'users.invitations': ['GET', '/api/users/invitations'],
  'users.revokeInvitation': ['POST', '/api/users/invitations/revoke'],
  'consents.list': ['GET', '/api/consents'],
  'consents.accept': ['POST', '/api/consents'],
  'users.list': ['GET', '/api/users'],
  'users.get': ['GET', '/api/users/{id}'],
  'users.find': ['GET', '/api/users/find'],
  'users.show': ['GET', '/api/users/{id}/details'],
  'users.block': ['POST', '/api/users/{id}/block'],
  'users.unblock': ['POST', '/api/users/{id}/unblock'],
  'users.unlock': ['POST', '/api/users/{id}/unlock'],
  'users.setRole': ['POST', '/api/users/{id}/role'],
  'users.impersonate': ['POST', '/api/users/{id}/impersonate'],
  'users.setFields': ['POST', '/api/users/{id}/fields'],
  'users.sendReset': ['POST', '/api/users/{id}/send-reset'],
  'users.delete': ['DELETE', '/api/users/{id}'],
  'users.endSessions': ['POST', '/api/users/{id}/end-sessions'],
  'users.removeSecondFactors': ['POST', '/api/users/{id}/remove-second-factors'],
  'profile.get': ['GET', '/api/profile'],
  'profile.language': ['GET', '/api/profile/language'],
  'profile.update': ['PUT', '/api/profile'],
  'upload.presign': ['POST', '/api/upload/presign'],
  'upload.confirm': ['POST', '/api/upload/confirm'],
  'upload.image': ['POST', '/api/upload/image'],
  'upload.parts': ['GET', '/api/upload/parts'],
  'upload.presignParts': ['POST', '/api/upload/parts'],
  'upload.complete': ['POST', '/api/upload/complete'],
  'upload.usage': ['GET', '/api/upload'],
  'upload.list': ['GET', '/api/uploads'],
  'upload.remove': ['DELETE', '/api/uploads/{name}'],
  'upload.address': ['POST', '/api/uploads/{name}/address'],
  'upload.publish': ['POST', '/api/uploads/{name}/publish'],
  'service.events': ['GET', '/api/events'],
  'webhooks.list': ['GET', '/api/webhooks'],
  'webhooks.get': ['GET', '/api/webhooks/{id}'],
  'webhooks.create': ['POST', '/api/webhooks'],
  'webhooks.update': ['PUT', '/api/webhooks/{id}'],
  'webhooks.delete': ['DELETE', '/api/webhooks/{id}'],
  'webhooks.rotateSecret': ['POST', '/api/webhooks/{id}/secret'],
  'webhooks.test': ['POST', '/api/webhooks/{id}/test'],
  'webhooks.deliveries': ['GET', '/api/webhooks/{id}/deliveries'],
  'webhooks.redeliver': ['POST', '/api/webhooks/{id}/deliveries/{deliveryId}'],
  'webhooks.redeliverSince': ['POST', '/api/webhooks/{id}/deliveries'],
  'applications.list': ['GET', '/api/applications'],
  'applications.get': ['GET', '/api/applications/{id}'],
  'applications.create': ['POST', '/api/applications'],
  'applications.update': ['PUT', '/api/applications/{id}'],
  'applications.delete': ['DELETE', '/api/applications/{id}'],
  'applications.rotateSecret': ['POST', '/api/applications/{id}/secret'],
  'authorizations.proceed': ['POST', '/api/authorizations/{id}'],
  'authorizations.logOut': ['POST', '/api/authorizations/logout'],
  'authorizations.device': ['POST', '/api/device'],
  'grants.list': ['GET', '/api/grants'],
  'grants.revoke': ['DELETE', '/api/grants/{id}'],
  health: ['GET', '/api/health'],
};

const headersOf = (
  url: string,
  { session, browser, device, pending, key, address = clientAddress(), headers }: CallOptions,
): Record<string, string> => {
  const prefix = url.startsWith('https:') ? '__Host-' : '';
  const cookies = Object.entries({
    auth_session: session,
    [`${prefix}auth_browser`]: browser,
    [`${prefix}auth_device`]: device,
    [`${prefix}auth_pending`]: pending,
  })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${value}`);
  return {
    'x-forwarded-for': address,
    ...(cookies.length > 0 && { cookie: cookies.join('; ') }),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...headers,
  };
};

/** The codes of many calls of one procedure, all refused, in one /trpc request; or that request's own status. */
export async function refusalsOfBatch(
  url: string,
  procedure: string,
  inputs: readonly unknown[],
  options: CallOptions = {},
): Promise<(string | number)[]> {
  const response = await fetch(`${url}/trpc/${Array(inputs.length).fill(procedure).join(',')}?batch=1`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headersOf(url, options) },
    body: JSON.stringify({ ...inputs }),
  });
  const answers = (await response.json()) as { error: { data: { code: string } } }[];
  return Array.isArray(answers) ? answers.map(({ error }) => error.data.code) : [response.status];
}

export const callerOf = (surface: Surface, url: string): Call =>
  surface === 'rest' ? overRest(url) : throughClient(url);

const overRest =
  (url: string): Call =>
  async (procedure, input, options = {}) => {
    const [method, pattern] = paths[procedure] ?? ['GET', '/unknown'];
    const fields = { ...(input as Record<string, unknown> | undefined) };
    const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = encodeURIComponent(String(fields[name]));
      delete fields[name];
      return value;
    });
    const hasBody = method !== 'GET' && method !== 'DELETE' && input !== undefined;
    const query = method === 'GET' ? `?${new URLSearchParams(fields as Record<string, string>)}` : '';
    const body = Array.isArray(input) || typeof input !== 'object' ? input : fields;
    const address = url + path + query;
    const signed = await options.sign?.(method, address);
    const response = await fetch(address, {
      method,
      headers: { ...headersOf(url, options), ...signed, ...(hasBody && { 'content-type': 'application/json' }) },
      ...(hasBody && { body: JSON.stringify(body) }),
    });
    if (!response.headers.has('x-request-id')) throw new ForeignAnswer(response, await response.text());
    const answer = (await response.json()) as Record<string, unknown>;
    const { status, headers } = response;
    if (procedure in paths) {
      await expectDocumented(url, method, pattern, { status, body: answer, setCookies: headers.getSetCookie() });
    }
    const refusal = response.ok || !('code' in answer) ? {} : answer;
    return reply(response, answer, refusal);
  };

const throughClient =
  (url: string): Call =>
  async (procedure, input, options = {}) => {
    const { createClient, isServiceError } = await loadClient();
    let response: Response | undefined;
    const client = createClient({
      url,
      headers: headersOf(url, options),
      solveChallenges: false,
      fetch: async (address, init = {}) => {
        const signed = await options.sign?.(init.method ?? 'GET', String(address));
        response = await fetch(address, { ...init, headers: { ...(init.headers as object), ...signed } });
        return response;
      },
    });
    const { query, mutate } = procedureOf(client, procedure);
    const [method] = paths[procedure] ?? ['GET'];
    try {
      const data = await (method === 'GET' ? query(input) : mutate(input));
      return reply(response, data, {});
    } catch (error) {
      if (!isServiceError(error)) throw error;
      expect(error.status).toBe(response?.status);
      const retryAfter = response?.headers.get('retry-after');
      expect(error.retryAfter).toBe(retryAfter ? Number(retryAfter) : undefined);
      const { message, code, details } = error;
      return reply(response, undefined, { message, code, details });
    }
  };

function reply(response: Response | undefined, data: unknown, refusal: Partial<Reply>): Reply {
  if (!response) throw new Error('nothing was sent');
  const { message, code, details } = refusal;
  const setCookies = response.headers.getSetCookie();
  const told = message ?? (data as { message?: unknown } | null | undefined)?.message;
  if (told !== undefined) expect(told).toMatch(/\w+ \w+/);
  return { status: response.status, headers: response.headers, setCookies, message, code, details, data };
}
