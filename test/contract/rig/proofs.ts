import { createHash, randomUUID } from 'node:crypto';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from 'jose';
import * as client from 'openid-client';
import { relyingParty } from './relying-party.ts';
import type { Scenario } from './scenario.ts';

/** What an attacker changes in a proof. */
export interface Changes {
  claims?: Record<string, unknown>;
  header?: Omit<Partial<JWTHeaderParameters>, 'jwk'> & { jwk?: JWK | undefined };
  key?: CryptoKey | Uint8Array;
}

/** A user's token for the API of the service, bound to a key, and the proofs that this key signs. */
export async function boundToken(scenario: Scenario, session: string, scope = 'openid profile:read') {
  const { appUrl } = scenario.stack;
  const party = await relyingParty(scenario, {
    scopes: ['openid', 'profile:read', 'profile:write', 'email', 'uploads:read'],
  });
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const jwk = await exportJWK(publicKey);
  const DPoP = client.getDPoPHandle(party.config, { publicKey, privateKey });
  const { callback, verifier } = await party.authorize(session, { parameters: { scope, resource: appUrl } });
  const checks = { pkceCodeVerifier: verifier, expectedState: 'the-state' };
  const resource = { resource: appUrl };
  const { access_token: token } = await client.authorizationCodeGrant(party.config, callback as URL, checks, resource, {
    DPoP,
  });

  /** A proof (RFC 9449 section 4.2) for a request to a path of the service. */
  const prove = (method: string, path: string, { claims, header, key = privateKey }: Changes = {}) =>
    new SignJWT({
      jti: randomUUID(),
      htm: method,
      htu: appUrl + path,
      iat: Math.floor(Date.now() / 1000),
      ath: createHash('sha256').update(token).digest('base64url'),
      ...claims,
    })
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header } as JWTHeaderParameters)
      .sign(key);
  return {
    party,
    token,
    jwk,
    privateKey,
    prove,
    /** For calls: sends the token with a new proof. */
    sign: async (method: string, url: string) => ({
      authorization: `DPoP ${token}`,
      dpop: await prove(method, new URL(url).pathname),
    }),
  };
}
