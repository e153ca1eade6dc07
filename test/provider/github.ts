import { randomBytes } from 'node:crypto';
import { serve } from './http.ts';

export interface GithubPerson {
  id: number;
  login: string;
  name: string | null;
  avatar_url: string;
  emails: { email: string; primary: boolean; verified: boolean; visibility: string | null }[];
}

/** GitHub, as a GitHub Enterprise Server: plain OAuth 2.0, users and their emails from an API. */
export async function startGithub() {
  const codes = new Map<string, GithubPerson>();
  const tokens = new Map<string, GithubPerson>();

  const server = await serve(({ url, headers, body }) => {
    const person = tokens.get(headers.authorization?.replace(/^Bearer /i, '') ?? '');
    switch (url.pathname) {
      case '/login/oauth/access_token': {
        const code = new URLSearchParams(body).get('code') ?? '';
        const granted = codes.get(code);
        codes.delete(code);
        // GitHub reports errors with status 200.
        if (!granted) return { body: { error: 'bad_verification_code', error_description: 'The code is incorrect.' } };
        const token = `gho_${randomBytes(18).toString('hex')}`;
        tokens.set(token, granted);
        return { body: { access_token: token, token_type: 'bearer', scope: 'read:user,user:email' } };
      }
      case '/api/v3/user': {
        if (!person) return { status: 401, body: { message: 'Bad credentials' } };
        const { emails, ...user } = person;
        return { body: { ...user, email: null, type: 'User' } };
      }
      case '/api/v3/user/emails':
        return person ? { body: person.emails } : { status: 401, body: { message: 'Bad credentials' } };
      default:
        return { status: 404, body: { message: 'Not Found' } };
    }
  });

  return {
    ...server,
    authorize(request: URL, person: GithubPerson): URL {
      const code = randomBytes(10).toString('hex');
      codes.set(code, person);
      const url = new URL(request.searchParams.get('redirect_uri') ?? '');
      const state = request.searchParams.get('state') ?? '';
      url.search = new URLSearchParams({ code, state, iss: `${server.url}/login/oauth` }).toString();
      return url;
    },
  };
}
