import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as client from 'openid-client';

/** Logs a user in on this device (RFC 8252): the browser comes back to a port of this process. */
const { ACCOUNTS_URL = 'http://localhost:3000', CLIENT_ID = '' } = process.env;

const issuer = new URL(ACCOUNTS_URL);
const config = await client.discovery(
  issuer,
  CLIENT_ID,
  { id_token_signed_response_alg: 'ES256' },
  client.None(),
  issuer.protocol === 'http:' ? { execute: [client.allowInsecureRequests] } : {},
);

const server = createServer();
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const redirect = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;

const verifier = client.randomPKCECodeVerifier();
const state = client.randomState();
const address = client.buildAuthorizationUrl(config, {
  redirect_uri: redirect,
  scope: 'openid profile email',
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: 'S256',
  state,
});
process.stdout.write(`Open this address in your browser:\n${address}\n`);

const callback = await new Promise<URL>((resolve) => {
  server.on('request', (request, response) => {
    const url = new URL(request.url ?? '/', redirect);
    // Any page can call this port: only the answer to our request counts.
    const isAnswer = url.pathname === '/callback' && url.searchParams.get('state') === state;
    response.writeHead(isAnswer ? 200 : 404, { connection: 'close' }).end(isAnswer ? 'You can close this page.' : '');
    if (isAnswer) resolve(url);
  });
});
server.close();

const tokens = await client.authorizationCodeGrant(config, callback, {
  pkceCodeVerifier: verifier,
  expectedState: state,
});
const user = await client.fetchUserInfo(config, tokens.access_token, tokens.claims()?.sub ?? '');
process.stdout.write(`Logged in as ${user.name}\n`);
