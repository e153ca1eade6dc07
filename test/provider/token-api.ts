import { createHash, createHmac, randomBytes } from 'node:crypto';
import { CLIENT_ID, CLIENT_SECRET, type Claims } from './hostile.ts';
import { type Answer, serve } from './http.ts';

/** The differences between plain OAuth 2.0 providers. */
interface Documents {
  tokenPath: string;
  /** The answer to an unknown code or client. */
  refusal: Answer;
  apiPath: string;
  /** The API's answer about the user of a token. */
  describe(person: Claims, query: URLSearchParams, token: string): Answer;
}

/** A plain OAuth 2.0 provider as documented: client_secret_post, S256, and one call that returns the user. */
async function startTokenApi({ tokenPath, refusal, apiPath, describe }: Documents) {
  const codes = new Map<string, { person: Claims; request: URL }>();
  const tokens = new Map<string, Claims>();
  const server = await serve(({ url, headers, body }) => {
    if (url.pathname === tokenPath) {
      const form = new URLSearchParams(body);
      const granted = codes.get(form.get('code') ?? '');
      codes.delete(form.get('code') ?? '');
      const authorization = granted?.request.searchParams;
      const challenge = createHash('sha256')
        .update(form.get('code_verifier') ?? '')
        .digest('base64url');
      const isRight =
        form.get('client_id') === CLIENT_ID &&
        form.get('client_secret') === CLIENT_SECRET &&
        form.get('redirect_uri') === authorization?.get('redirect_uri') &&
        challenge === authorization?.get('code_challenge');
      if (!granted || !isRight) return refusal;
      const token = randomBytes(18).toString('base64url');
      tokens.set(token, granted.person);
      return { body: { access_token: token, token_type: 'bearer', expires_in: 604_800 } };
    }
    const token = headers.authorization?.replace(/^Bearer /i, '') ?? '';
    const person = tokens.get(token);
    if (url.pathname !== apiPath) return { status: 404, body: {} };
    return person ? describe(person, url.searchParams, token) : { status: 401, body: {} };
  });

  return {
    ...server,
    authorize(request: URL, person: Claims): URL {
      const code = randomBytes(10).toString('hex');
      codes.set(code, { person, request });
      const url = new URL(request.searchParams.get('redirect_uri') ?? '');
      url.search = new URLSearchParams({ code, state: request.searchParams.get('state') ?? '' }).toString();
      return url;
    },
  };
}

export const startDiscord = () =>
  startTokenApi({
    tokenPath: '/api/oauth2/token',
    refusal: { status: 400, body: { error: 'invalid_grant', error_description: 'Invalid "code" in request.' } },
    apiPath: '/api/v10/users/@me',
    describe: (person) => ({ body: { discriminator: '0', mfa_enabled: true, locale: 'en-US', flags: 0, ...person } }),
  });

/** With “Require app secret”, as documented: calls need a proof. Unrequested fields are omitted. */
export const startFacebook = () =>
  startTokenApi({
    tokenPath: '/v23.0/oauth/access_token',
    refusal: {
      status: 400,
      body: { error: { message: 'This authorization code has been used.', type: 'OAuthException', code: 100 } },
    },
    apiPath: '/v23.0/me',
    describe(person, query, token) {
      const proof = createHmac('sha256', CLIENT_SECRET).update(token).digest('hex');
      if (query.get('appsecret_proof') !== proof) return { status: 400, body: { error: { code: 100 } } };
      const fields = query.get('fields')?.split(',') ?? ['id', 'name'];
      return { body: Object.fromEntries(fields.filter((field) => field in person).map((f) => [f, person[f]])) };
    },
  });
