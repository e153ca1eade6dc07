import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createClient, isServiceError, type Profile } from 'account-client';

/** Pages that are rendered on a server, by the session of their user. It gets the cookie if the service's COOKIE_DOMAIN spans both. */
const { PORT = '4000', ACCOUNTS_URL = 'http://localhost:3000' } = process.env;
const { OWN_URL = `http://localhost:${PORT}` } = process.env;

/** A client that speaks for the user of a request; a cookie that the service sets, as for a session that it prolongs, goes on to the browser. */
const clientFor = (request: IncomingMessage, response: ServerResponse) =>
  createClient({
    url: ACCOUNTS_URL,
    headers: { cookie: request.headers.cookie ?? '', 'accept-language': request.headers['accept-language'] ?? '*' },
    fetch: async (input, init) => {
      const answer = await fetch(input, init);
      for (const line of answer.headers.getSetCookie()) response.appendHeader('Set-Cookie', line);
      return answer;
    },
  });

type Client = ReturnType<typeof clientFor>;

const profileOf = async (accounts: Client): Promise<Profile | undefined> => {
  try {
    return (await accounts.profile.get.query()).user;
  } catch (error) {
    if (isServiceError(error, 'UNAUTHENTICATED')) return undefined;
    throw error;
  }
};

const escaped = (text: string) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

const page = (content: string) => `<!doctype html><html lang="en"><title>Example</title><body>${content}`;

const logInPage = `${ACCOUNTS_URL}/login?${new URLSearchParams({ returnTo: `${OWN_URL}/` })}`;

/**
 * A Strict cookie does not come with the first request of a browser that follows a link of another site, or that a provider sends
 * here. A page that loads itself once more gets it.
 */
const reload = page('<meta http-equiv="refresh" content="0"><p>One moment …');

async function show(request: IncomingMessage, accounts: Client): Promise<string> {
  const profile = await profileOf(accounts);
  if (profile) {
    const logOut = '<form method="post" action="/log-out"><button>Log out</button></form>';
    return page(`<h1>Welcome, ${escaped(profile.name)}</h1>${logOut}`);
  }
  if (request.headers['sec-fetch-site'] === 'cross-site') return reload;
  return page(`<h1>Welcome</h1><a href="${escaped(logInPage)}">Log in</a>`);
}

createServer(async (request, response) => {
  const accounts = clientFor(request, response);
  response.setHeader('Content-Type', 'text/html; charset=utf-8').setHeader('Cache-Control', 'no-store');
  try {
    if (request.method === 'POST' && request.url === '/log-out') {
      // To the service every call from here is a program's: which page has sent the browser is for this server to check.
      if (request.headers.origin !== OWN_URL) {
        response.writeHead(403).end();
        return;
      }
      await accounts.auth.logout.mutate();
      response.writeHead(303, { Location: '/' }).end();
      return;
    }
    response.end(await show(request, accounts));
  } catch (error) {
    process.stderr.write(`${error}\n`);
    response.writeHead(503).end(page('<h1>Please try again shortly</h1>'));
  }
}).listen(Number(PORT), () => process.stdout.write(`${OWN_URL}\n`));
