import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createClient, isServiceError, type Profile } from 'account-client';

/** Server-rendered pages for the user of the session. The server gets the cookie if COOKIE_DOMAIN covers both hosts. */
const { PORT = '4000', ACCOUNTS_URL = 'http://localhost:3000' } = process.env;
const { OWN_URL = `http://localhost:${PORT}` } = process.env;

/** A client that acts for the user of a request, and passes the service's cookies on, such as those of a renewed session. */
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
 * Browsers omit a Strict cookie on the first request after a link from another site or a provider. A page that
 * reloads itself once gets it.
 */
const reload = page('<meta http-equiv="refresh" content="0"><p>One moment…');

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
      // The service sees every call from here as that of a program, so this server must check the page that sent the browser.
      if (request.headers.origin !== OWN_URL) {
        response.writeHead(403).end();
        return;
      }
      await accounts.auth.logout.mutate().catch((error: unknown) => {
        // The session has ended already.
        if (!isServiceError(error, 'UNAUTHENTICATED')) throw error;
      });
      response.writeHead(303, { Location: '/' }).end();
      return;
    }
    response.end(await show(request, accounts));
  } catch (error) {
    process.stderr.write(`${error}\n`);
    response.writeHead(503).end(page('<h1>Please try again shortly</h1>'));
  }
}).listen(Number(PORT), () => process.stdout.write(`${OWN_URL}\n`));
