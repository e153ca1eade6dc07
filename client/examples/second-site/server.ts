import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import * as client from 'openid-client';

/** Another site whose users log in at the account service (OpenID Connect), and are logged out with their session there. */
const { PORT = '4100', ACCOUNTS_URL = 'http://localhost:3000', CLIENT_ID = '', CLIENT_SECRET = '' } = process.env;
const { OWN_URL = `http://localhost:${PORT}` } = process.env;
const redirect = `${OWN_URL}/callback`;

const issuer = new URL(ACCOUNTS_URL);
const config = await client.discovery(
  issuer,
  CLIENT_ID,
  { id_token_signed_response_alg: 'ES256' },
  client.ClientSecretBasic(CLIENT_SECRET),
  issuer.protocol === 'http:' ? { execute: [client.allowInsecureRequests] } : {},
);
const { issuer: accounts, jwks_uri: keysUrl = '' } = config.serverMetadata();
const keys = createRemoteJWKSet(new URL(keysUrl));

interface Login {
  name: string;
  userId: string;
  /** The login, as the account service names it. */
  sid: unknown;
  idToken: string;
  /** When it began, in Unix seconds. */
  at: number;
}

/** By the value of the cookie. A real site stores them, and removes those that nobody came back to. */
const logins = new Map<string, Login>();
const begun = new Map<string, { verifier: string; state: string }>();

const cookieOf = ({ headers }: IncomingMessage) => /(?:^|; )site=([\w-]+)/.exec(headers.cookie ?? '')?.[1] ?? '';
const setCookie = (value: string) =>
  `site=${value}; Path=/; HttpOnly; SameSite=Lax${OWN_URL.startsWith('https:') ? '; Secure' : ''}`;
const escaped = (part: string) => part.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** An answer: a page, or where the browser goes next. */
type Answer = { status?: number; page?: string; location?: URL | string; cookie?: string };

async function logIn(): Promise<Answer> {
  const [cookie, verifier, state] = [
    randomBytes(32).toString('base64url'),
    client.randomPKCECodeVerifier(),
    client.randomState(),
  ];
  begun.set(cookie, { verifier, state });
  const location = client.buildAuthorizationUrl(config, {
    redirect_uri: redirect,
    scope: 'openid profile',
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
  });
  return { location, cookie };
}

/** The browser comes back. Another browser does not have the verifier, and gets another cookie than before its login. */
async function finish(request: IncomingMessage): Promise<Answer> {
  const started = begun.get(cookieOf(request));
  begun.delete(cookieOf(request));
  if (!started) return { status: 400, page: 'Please log in again.' };
  const checks = { pkceCodeVerifier: started.verifier, expectedState: started.state };
  const tokens = await client.authorizationCodeGrant(config, new URL(request.url ?? '', redirect), checks);
  const claims = tokens.claims();
  const userId = claims?.sub ?? '';
  const { name = '' } = await client.fetchUserInfo(config, tokens.access_token, userId);
  const cookie = randomBytes(32).toString('base64url');
  logins.set(cookie, { name, userId, sid: claims?.['sid'], at: claims?.iat ?? 0, idToken: tokens.id_token ?? '' });
  return { location: '/', cookie };
}

function logOut(request: IncomingMessage): Answer {
  const login = logins.get(cookieOf(request));
  if (request.headers.origin !== OWN_URL || !login) return { status: 403, page: 'Not logged in' };
  logins.delete(cookieOf(request));
  const location = client.buildEndSessionUrl(config, {
    id_token_hint: login.idToken,
    post_logout_redirect_uri: `${OWN_URL}/`,
  });
  return { location };
}

/** The account service says that a login has ended, or all of a user (OpenID Connect Back-Channel Logout 1.0). */
async function loggedOut(request: IncomingMessage): Promise<Answer> {
  const token = new URLSearchParams(await text(request)).get('logout_token') ?? '';
  const { payload } = await jwtVerify(token, keys, { issuer: accounts, audience: CLIENT_ID, typ: 'logout+jwt' });
  if (payload['nonce'] !== undefined || !payload['events']) return { status: 400 };
  // Without `sid` all logins of the user that began before: a message may be repeated late.
  const isMeant = ({ sid, userId, at }: Login): boolean =>
    payload['sid'] === undefined ? userId === payload.sub && at <= Number(payload['toe']) : sid === payload['sid'];
  for (const [cookie, login] of logins) if (isMeant(login)) logins.delete(cookie);
  return {};
}

function home(request: IncomingMessage): Answer {
  const login = logins.get(cookieOf(request));
  const logOutForm = '<form method="post" action="/log-out"><button>Log out</button></form>';
  return { page: login ? `<h1>Welcome, ${escaped(login.name)}</h1>${logOutForm}` : '<a href="/log-in">Log in</a>' };
}

const routes: Record<string, (request: IncomingMessage) => Answer | Promise<Answer>> = {
  'GET /': home,
  'GET /log-in': logIn,
  'GET /callback': finish,
  'POST /log-out': logOut,
  'POST /logged-out': loggedOut,
};

createServer(async (request, response) => {
  const route = routes[`${request.method} ${request.url?.split('?')[0]}`];
  const {
    status,
    page = '',
    location,
    cookie,
  } = await Promise.resolve(route?.(request) ?? { status: 404, page: 'Not found' }).catch(
    (): Answer => ({ status: 400, page: 'The request is not valid.' }),
  );
  response.writeHead(location ? 303 : (status ?? 200), {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'no-store',
    ...(location && { Location: String(location) }),
    ...(cookie !== undefined && { 'Set-Cookie': setCookie(cookie) }),
  });
  response.end(page);
}).listen(Number(PORT), '127.0.0.1', () => process.stdout.write(`Open ${OWN_URL}\n`));
