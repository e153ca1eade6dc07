import { serve } from '@hono/node-server';
import { isServiceError, uploadImage } from 'account-client';
import { createAccounts, type ServerSession } from 'account-client/server';
import { type Context, Hono } from 'hono';
import { csrf } from 'hono/csrf';
import { html } from 'hono/html';

/** Pages without scripts of their own. The server gets the cookie if COOKIE_DOMAIN covers both hosts. */
const { PORT = '4300', ACCOUNTS_URL = 'http://localhost:3000', ACCOUNTS_TOKEN = '', COOKIE_DOMAIN } = process.env;
const { OWN_URL = `http://localhost:${PORT}` } = process.env;

const accounts = createAccounts({ url: ACCOUNTS_URL, token: ACCOUNTS_TOKEN, cookieDomain: COOKIE_DOMAIN });
const logInPage = `${ACCOUNTS_URL}/login?${new URLSearchParams({ returnTo: `${OWN_URL}/` })}`;

const clientOf = (c: Context) => accounts.clientOf(c.req.raw, (line) => c.header('Set-Cookie', line, { append: true }));

/** The page of the user, with the reason why a change was refused. */
async function home(c: Context, problem = '') {
  const session = await accounts.sessionOf(c.req.raw);
  c.header('Cache-Control', 'no-store');
  return c.html(
    html`<!doctype html><html lang="en"><title>Example</title><body>${session ? profile(session.user) : welcome}${
      problem && html`<p role="alert">${problem}</p>`
    }`,
    problem ? 400 : 200,
  );
}

const welcome = html`<h1>Welcome</h1><a href="${logInPage}">Log in</a>`;

const profile = ({ name, avatar }: ServerSession['user']) => html`
<h1>Welcome, ${name}</h1>
${avatar && html`<img src="${avatar}" width="96" height="96" alt="You">`}
<form method="post" action="/profile" enctype="multipart/form-data">
<label>Name <input name="name" value="${name}" autocomplete="name"></label>
<label>Picture <input name="picture" type="file" accept="image/jpeg,image/png"></label>
<button>Save</button>
</form>
<form method="post" action="/log-out"><button>Log out</button></form>`;

const app = new Hono();
app.use(csrf({ origin: OWN_URL }));
app.use(accounts.hono);

app.get('/', (c) => home(c));

app.post('/profile', async (c) => {
  const { name, picture } = await c.req.parseBody();
  const client = clientOf(c);
  try {
    const image =
      picture instanceof File && picture.size > 0 && (await uploadImage(client, picture, { type: 'avatar' }));
    await client.profile.update.mutate({ name: String(name), ...(image && { avatar: image.url }) });
  } catch (error) {
    if (!isServiceError(error)) throw error;
    return home(c, Object.values(error.details ?? {})[0]?.message ?? error.message);
  }
  return c.redirect('/', 303);
});

app.post('/log-out', async (c) => {
  await clientOf(c)
    .auth.logout.mutate()
    .catch((error: unknown) => {
      // The session has ended already.
      if (!isServiceError(error, 'UNAUTHENTICATED')) throw error;
    });
  return c.redirect('/', 303);
});

app.onError((error, c) => {
  process.stderr.write(`${error}\n`);
  return c.html('<!doctype html><h1>Please try again shortly</h1>', 503);
});

serve({ fetch: app.fetch, port: Number(PORT), hostname: '127.0.0.1' }, () => process.stdout.write(`${OWN_URL}\n`));
