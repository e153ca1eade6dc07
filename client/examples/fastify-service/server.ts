import { createSessionChecker, type Profile, type ServiceSessionOutput, sessionTokenIn } from 'account-client';
import Fastify from 'fastify';

/** Another service whose users log in at the account service. */
const { PORT = '4001', ACCOUNTS_URL = 'http://localhost:3000', ACCOUNTS_TOKEN, COOKIE_DOMAIN } = process.env;
const { CACHE_SECONDS = '10' } = process.env;
if (!ACCOUNTS_TOKEN) throw new Error('ACCOUNTS_TOKEN is missing: `npm run service-token NAME` at the account service');

declare module 'fastify' {
  interface FastifyRequest {
    user: Profile | null;
  }
}

/** A logout takes effect here after at most this many seconds. */
const sessions = createSessionChecker({
  url: ACCOUNTS_URL,
  token: ACCOUNTS_TOKEN,
  cacheSeconds: Number(CACHE_SECONDS),
});

const app = Fastify();
app.decorateRequest('user', null);

app.addHook('onRequest', async (request, reply) => {
  const found = await sessions.checkCookies(request.headers.cookie).catch((error: unknown) => {
    request.log.error(error);
    return undefined;
  });
  if (found === undefined) return reply.code(503).send({ message: 'Please try again shortly' });
  if (found === null) return reply.code(401).send({ message: 'Please log in' });
  request.user = found.user;
  if (found.fresh) reply.header('set-cookie', prolonged(sessionTokenIn(request.headers.cookie), found));
});

/** The cookie that the account service sets. */
function prolonged(token: string, { session }: NonNullable<ServiceSessionOutput>): string {
  const seconds = session.expiresAt - Math.floor(Date.now() / 1000);
  const domain = COOKIE_DOMAIN ? `; Domain=${COOKIE_DOMAIN}` : '';
  const secure = ACCOUNTS_URL.startsWith('https:') ? '; Secure' : '';
  return `auth_session=${token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}${domain}${secure}`;
}

app.get('/orders', async ({ user }) => ({ of: user?.name, orders: [] }));

await app.listen({ port: Number(PORT) });
process.stdout.write(`http://localhost:${PORT}\n`);
