import { createServer } from 'node:http';
import Provider, { type AdapterPayload } from 'oidc-provider';

/** The bare library with its models in a `Map`, and one account. `GET /codes?count=10` returns codes of that account. */
const { PORT, CHALLENGE = '', REDIRECT_URI = '', CLIENT_SECRET = '', SIGNING_KEY = '' } = process.env;
const CLIENT_ID = 'bench';
const SCOPE = 'openid profile email offline_access';

const stored = new Map<string, AdapterPayload>();
const adapter = (model: string) => {
  const find = async (id: string) => stored.get(`${model}:${id}`);
  return {
    find,
    findByUid: async () => undefined,
    findByUserCode: async () => undefined,
    async upsert(id: string, payload: AdapterPayload) {
      stored.set(`${model}:${id}`, payload);
    },
    async consume(id: string) {
      const payload = await find(id);
      if (payload) payload.consumed = 1;
    },
    async destroy(id: string) {
      stored.delete(`${model}:${id}`);
    },
    revokeByGrantId: async () => undefined,
  };
};

const provider = new Provider(`http://127.0.0.1:${PORT}`, {
  adapter,
  jwks: { keys: [JSON.parse(SIGNING_KEY)] },
  clients: [
    {
      client_id: CLIENT_ID,
      client_secret: CLIENT_SECRET,
      redirect_uris: [REDIRECT_URI],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      id_token_signed_response_alg: 'ES256',
    },
  ],
  claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
  features: { devInteractions: { enabled: false }, introspection: { enabled: true } },
  rotateRefreshToken: true,
  findAccount: (_ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: 'Ada', email: 'ada@example.test', email_verified: true }),
  }),
});

async function makeCode(): Promise<string> {
  const client = await provider.Client.find(CLIENT_ID);
  if (!client) throw new Error('there is no client');
  const grant = new provider.Grant({ accountId: 'ada', clientId: CLIENT_ID });
  grant.addOIDCScope(SCOPE);
  const code = new provider.AuthorizationCode({
    accountId: 'ada',
    client,
    grantId: await grant.save(),
    gty: 'authorization_code',
    scope: SCOPE,
    redirectUri: REDIRECT_URI,
    codeChallenge: CHALLENGE,
    codeChallengeMethod: 'S256',
    authTime: Math.floor(Date.now() / 1000),
  });
  return code.save();
}

const answer = provider.callback();
createServer(async (request, response) => {
  const url = new URL(request.url ?? '', `http://127.0.0.1:${PORT}`);
  if (url.pathname !== '/codes') return answer(request, response);
  const codes: string[] = [];
  for (let n = Number(url.searchParams.get('count')); n > 0; n--) codes.push(await makeCode());
  response.end(JSON.stringify(codes));
}).listen(Number(PORT), '127.0.0.1');
