import { v7 as uuidv7 } from 'uuid';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { User } from '../../../entities/index.ts';
import { accountOf } from '../../../server/accounts/users/index.ts';
import { backgroundJob, operator } from '../../../server/activity/caller.ts';
import { createActivity } from '../../../server/activity/index.ts';
import { createRules, openParts } from '../../../server/assemble.ts';
import { parseConfig } from '../../../server/config/index.ts';
import { newToken } from '../../../server/lib/random-token.ts';
import { createGrants } from '../../../server/oauth/grants.ts';
import { createShortLived } from '../../../server/oauth/short-lived.ts';
import { createSecrets } from '../../../server/secrets.ts';
import { createLog } from '../../../server/telemetry/log.ts';
import { readTexts } from '../../../server/texts/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { until } from '../../rig/until.ts';

/** Access tokens for our own API. */

const config = parseConfig({ DATA_DIR: temporaryDirectory('resolve-token'), LOG_LEVEL: 'silent' });
let parts: Awaited<ReturnType<typeof openParts>>;
let rules: ReturnType<typeof createRules>;
const ada = User.register({ email: 'ada@example.test', name: 'Ada', passwordHash: 'x' });

beforeAll(async () => {
  const log = await createLog(config);
  const secrets = createSecrets(['x'.repeat(32)]);
  parts = await openParts(config, { secrets, log });
  await parts.database.migrate();
  await parts.database.transaction((em) => em.insert(ada));
  rules = createRules(config, parts, { identityProviders: new Map(), secrets, texts: readTexts(undefined), log });
});
afterAll(() => parts.close());

const granted = async () => {
  const { application } = await rules.applications.create(
    {
      name: 'Shop',
      kind: 'native',
      redirectUris: ['http://127.0.0.1/'],
      postLogoutRedirectUris: [],
      resources: [],
      scopes: ['openid', 'profile:read'],
      tokenFormat: 'jwt',
      trusted: true,
      logoUrl: null,
      backchannelLogoutUri: null,
      publicKeys: [],
    },
    operator,
  );
  const user = accountOf(ada);
  const request = { ...backgroundJob, formerToken: undefined, deviceCookie: undefined };
  const { token: session } = await rules.accounts.sessions.openSession(user, { method: 'password' }, request);
  const opened = await rules.accounts.sessions.validate(session);
  const grants = createGrants({
    issuer: config.appUrl,
    database: parts.database,
    activity: createActivity(parts.database, { keptDays: 1 }),
    mail: rules.accounts.mail,
  });
  const asked = { user, application, scopes: ['profile:read'], resources: [config.appUrl] };
  const grantId = await grants.save({ ...asked, sessionId: opened?.id ?? '' }, backgroundJob);
  return { applicationId: application.id, grantId, session };
};

const tokenOf = async (
  { applicationId, grantId }: { applicationId: string; grantId: string },
  given: object = {},
  lifeMs = 300_000,
) => {
  const token = newToken();
  const now = Math.floor(Date.now() / 1000);
  const payload = {
    kind: 'AccessToken',
    accountId: ada.id,
    clientId: applicationId,
    grantId,
    aud: config.appUrl,
    scope: 'profile:read',
    iat: now,
    exp: now + 300,
  };
  await createShortLived(parts.store, 'AccessToken').insert(token, { ...payload, ...given }, lifeMs);
  return token;
};

test('without an application no token is looked up', async () => {
  expect(await rules.oauth.resolveToken(newToken())).toBeUndefined();
});

test('a token names its user, application, grant and scopes, until its session ends', async () => {
  const { session, ...grant } = await granted();
  const token = await tokenOf(grant);
  expect(await rules.oauth.resolveToken(token)).toEqual({
    ...grant,
    userId: ada.id,
    scopes: ['profile:read'],
    issuedAt: expect.any(Number),
    expiresAt: expect.any(Number),
  });
  await rules.accounts.sessions.end(session, backgroundJob);
  expect(await rules.oauth.resolveToken(token)).toBeUndefined();
});

test('a token for another API, bound to a key, expired or invented names nobody', async () => {
  const grant = await granted();
  for (const given of [{ aud: 'https://other.example.com' }, { aud: undefined }, { jkt: 'x'.repeat(43) }])
    expect(await rules.oauth.resolveToken(await tokenOf(grant, given))).toBeUndefined();
  expect(await rules.oauth.resolveToken(await tokenOf({ ...grant, grantId: uuidv7() }))).toBeUndefined();
  const brief = await tokenOf(grant, {}, 1);
  await until(async () => (await rules.oauth.resolveToken(brief)) === undefined);
  for (const token of [newToken(), 'x', '']) expect(await rules.oauth.resolveToken(token)).toBeUndefined();
});
