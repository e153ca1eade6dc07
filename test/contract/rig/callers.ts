import { expect } from 'vitest';
import { clientAddress } from '../rig/address.ts';
import { loadClient, procedureOf } from '../rig/client.ts';
import { expectDocumented } from './document.ts';

/** What came back, the same for both surfaces. `code` and `details` are those of an error; `data` is the answer. */
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
  /** The browser's own cookie, as an answer has set it. */
  browser?: string | undefined;
  /** The cookie of the device, as a login has set it. */
  device?: string | undefined;
  /** The cookie of a login that waits for its second factor. */
  pending?: string | undefined;
  /** The client's address; a fresh one unless given, so that no test uses up another's limits. */
  address?: string;
  headers?: Record<string, string>;
}

/** What a proxy answers in place of the service. */
export class ForeignAnswer extends Error {
  readonly status: number;

  constructor({ status }: Response, body: string) {
    super(`not the service has answered ${status}: ${body.slice(0, 200)}`);
    this.status = status;
  }
}

/** REST by hand, or tRPC through the client package as it is built. */
export type Surface = 'rest' | 'trpc';

/** A caller of one surface, by the names of the procedures. */
export type Call = (procedure: string, input?: unknown, options?: CallOptions) => Promise<Reply>;

/** interface.md section 4 and decisions.md, by procedure. */
export const paths: Record<string, [method: string, path: string]> = {
  'auth.register': ['POST', '/auth/register'],
  'auth.login': ['POST', '/auth/login'],
  'auth.beginPasskey': ['POST', '/auth/passkey/options'],
  'auth.finishPasskey': ['POST', '/auth/passkey'],
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
  'upload.usage': ['GET', '/api/upload'],
  'upload.list': ['GET', '/api/uploads'],
  'upload.remove': ['DELETE', '/api/uploads/{name}'],
  health: ['GET', '/api/health'],
};

const headersOf = ({
  session,
  browser,
  device,
  pending,
  address = clientAddress(),
  headers,
}: CallOptions): Record<string, string> => {
  const cookies = Object.entries({
    auth_session: session,
    auth_browser: browser,
    auth_device: device,
    auth_pending: pending,
  })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${value}`);
  return { 'x-forwarded-for': address, ...(cookies.length > 0 && { cookie: cookies.join('; ') }), ...headers };
};

/** The codes of many calls of one procedure, all refused, in one request over /trpc; or that request's own status. */
export async function refusalsOfBatch(
  url: string,
  procedure: string,
  inputs: readonly unknown[],
  options: CallOptions = {},
): Promise<(string | number)[]> {
  const response = await fetch(`${url}/trpc/${Array(inputs.length).fill(procedure).join(',')}?batch=1`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headersOf(options) },
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
    const path = pattern.replace(/\{(\w+)\}/, (_, name: string) => {
      const value = encodeURIComponent(String(fields[name]));
      delete fields[name];
      return value;
    });
    const hasBody = method !== 'GET' && method !== 'DELETE' && input !== undefined;
    const query = method === 'GET' ? `?${new URLSearchParams(fields as Record<string, string>)}` : '';
    const body = Array.isArray(input) || typeof input !== 'object' ? input : fields;
    const response = await fetch(url + path + query, {
      method,
      headers: { ...headersOf(options), ...(hasBody && { 'content-type': 'application/json' }) },
      ...(hasBody && { body: JSON.stringify(body) }),
    });
    if (!response.headers.has('x-request-id')) throw new ForeignAnswer(response, await response.text());
    const answer = (await response.json()) as Record<string, unknown>;
    if (procedure in paths) await expectDocumented(url, method, pattern, response.status, answer);
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
      headers: headersOf(options),
      fetch: async (...request) => {
        response = await fetch(...request);
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
  return { status: response.status, headers: response.headers, setCookies, message, code, details, data };
}
