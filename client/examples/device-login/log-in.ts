import * as client from 'openid-client';

/** A command line that logs its user in by a code, which the user enters in a browser on any device (RFC 8628). */
const { ACCOUNTS_URL = 'http://localhost:3000', CLIENT_ID } = process.env;
if (!CLIENT_ID) throw new Error('CLIENT_ID is missing: `npm run application -- add NAME --kind device`');

const issuer = new URL(ACCOUNTS_URL);
const config = await client.discovery(
  issuer,
  CLIENT_ID,
  { id_token_signed_response_alg: 'ES256' },
  client.None(),
  issuer.protocol === 'http:' ? { execute: [client.allowInsecureRequests] } : {},
);

const asked = await client.initiateDeviceAuthorization(config, { scope: 'openid email offline_access' });
process.stdout.write(`Open ${asked.verification_uri} and enter ${asked.user_code}\n`);
const tokens = await client.pollDeviceAuthorizationGrant(config, asked);

const { email } = await client.fetchUserInfo(config, tokens.access_token, tokens.claims()?.sub ?? '');
process.stdout.write(`Logged in as ${email}\n`);
// Store tokens.refresh_token in a file that only the user can read. Later: client.refreshTokenGrant(config, token)
