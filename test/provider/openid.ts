import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { exportJWK, generateKeyPair } from 'jose';
import Provider, { type Adapter, type AdapterPayload } from 'oidc-provider';
import type { Browser } from './browser.ts';
import { CLIENT_ID, CLIENT_SECRET, type Claims } from './hostile.ts';

/** A certified OpenID provider as an operator runs one: RS256, PKCE, claims at the userinfo endpoint. */
export async function startOpenIdProvider() {
  const users = new Map<string, Claims>();
  const redirectUris = new Set<string>();
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });

  const provider = new Provider(url, {
    adapter: (model) => memoryAdapter(model, redirectUris),
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'one' }] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'picture'] },
    cookies: { keys: ['only for tests'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_ctx, { uid }) => `${url}/interaction/${uid}` },
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({
        clientId: CLIENT_ID,
        ...(oidc.session?.accountId && { accountId: oidc.session.accountId }),
      });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
    findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub, ...users.get(sub) }) }),
    ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 60, IdToken: 60, Interaction: 60, Session: 60 },
  });
  const serveProtocol = provider.callback();
  server.on('request', (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return void serveProtocol(request, response);
    void json(request).then((result) =>
      provider.interactionFinished(request, response, result as { login: { accountId: string } }),
    );
  });

  return {
    url,
    /** Registers the service as a client. */
    allow: (redirectUri: string) => redirectUris.add(redirectUri),
    /** What the provider states about a user from now on. */
    setClaims: (sub: string, claims: Claims) => users.set(sub, claims),
    /** Logs a user in at the provider: returns the URL that the browser is sent back to. */
    async authorize(browser: Browser, request: URL, sub: string): Promise<URL> {
      const page = await browser.redirectOf(request);
      const resume = await browser.redirectOf(page, {
        method: 'POST',
        body: JSON.stringify({ login: { accountId: sub } }),
      });
      return new URL(await browser.redirectOf(resume));
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function memoryAdapter(model: string, redirectUris: Set<string>): Adapter {
  const payloads = new Map<string, AdapterPayload>();
  const client = () => ({ client_id: CLIENT_ID, client_secret: CLIENT_SECRET, redirect_uris: [...redirectUris] });
  return {
    async upsert(id, payload) {
      payloads.set(id, payload);
    },
    find: async (id) => (model === 'Client' ? client() : payloads.get(id)),
    findByUid: async (uid) => [...payloads.values()].find((payload) => payload.uid === uid),
    findByUserCode: async () => undefined,
    async consume(id) {
      const payload = payloads.get(id);
      if (payload) payload.consumed = Math.floor(Date.now() / 1000);
    },
    async destroy(id) {
      payloads.delete(id);
    },
    revokeByGrantId: async () => undefined,
  };
}
