import { createConnection } from 'mysql2/promise';
import { type ResponseBodyError, refreshTokenGrant } from 'openid-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callerOf } from '../../contract/rig/callers.ts';
import { relyingParty } from '../../contract/rig/relying-party.ts';
import { loggedIn, logIn, verified } from '../../contract/rig/scenario.ts';
import { type Stack, startStack } from '../../rig/stack.ts';
import { until } from '../../rig/until.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack('real', { env: { LIMIT_REFRESH: '3/3600' } });
});
afterAll(() => stack?.stop());

const artifactsOf = (applicationId: string, condition: string) =>
  stack.database(
    `select a.id from oauth_artifacts a join grants g on g.id = a.grant_id where g.application_id = ? and ${condition}`,
    [applicationId],
  );

const offline = { scope: 'openid offline_access', prompt: 'consent' };

test('a refresh token whose successor cannot be stored is not used', async () => {
  const scenario = { stack, call: callerOf('rest', stack.url) };
  const party = await relyingParty(scenario);
  const { session } = await loggedIn(scenario);
  const { refresh_token: token = '' } = await party.logIn(session, offline);
  await stack.database(
    "create trigger refuse before insert on oauth_artifacts for each row signal sqlstate '45000' set message_text = 'refused'",
  );
  await expect(refreshTokenGrant(party.config, token)).rejects.toThrow('unexpected HTTP response status');
  await stack.database('drop trigger refuse');
  // The code.
  expect(await artifactsOf(party.id, 'consumed_at is not null')).toHaveLength(1);
  await refreshTokenGrant(party.config, token);
});

// checks: 72
test('the refreshes of a grant are limited; a refused one uses no token, and the log names the limit', async () => {
  const scenario = { stack, call: callerOf('rest', stack.url) };
  const party = await relyingParty(scenario);
  const { session } = await loggedIn(scenario);
  let { refresh_token: token = '' } = await party.logIn(session);
  const refresh = () => refreshTokenGrant(party.config, token);
  for (let i = 0; i < 3; i++) ({ refresh_token: token = '' } = await refresh());
  const refusal = (await refresh().catch((error: unknown) => error)) as ResponseBodyError;
  expect(refusal.status).toBe(429);
  const { headers } = refusal.response;
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  expect(headers.get('ratelimit-reset')).toBe(headers.get('retry-after'));
  expect([headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')]).toEqual(['3', '0']);
  const warnings = () => stack.services[0]?.output().match(/answered 429: LIMIT_REFRESH is used up/g) ?? [];
  await expect.poll(warnings).toHaveLength(1);
  expect(await artifactsOf(party.id, 'consumed_at is null')).toHaveLength(1);
  // Another grant has its own count.
  expect(await party.logIn((await loggedIn(scenario)).session)).toMatchObject({ refresh_token: expect.any(String) });
});

// checks: 71
test('all grants of a user for an application share four times the limit', async () => {
  const scenario = { stack, call: callerOf('rest', stack.url) };
  const party = await relyingParty(scenario);
  const person = await verified(scenario);
  const statuses: number[] = [];
  for (let i = 0; i < 5; i++) {
    let { refresh_token: token = '' } = await party.logIn(await logIn(scenario.call, person));
    for (let j = 0; j < 3; j++) {
      const refreshed = await refreshTokenGrant(party.config, token).catch(({ status }: ResponseBodyError) => status);
      statuses.push(typeof refreshed === 'number' ? refreshed : 200);
      if (typeof refreshed !== 'number') token = refreshed.refresh_token ?? '';
    }
  }
  expect(statuses).toEqual([...Array(12).fill(200), 429, 429, 429]);
  // Another application, and another user of this one, have their own count.
  const other = await relyingParty(scenario);
  for (const [by, session] of [
    [other, await logIn(scenario.call, person)],
    [party, (await loggedIn(scenario)).session],
  ] as const)
    await refreshTokenGrant(by.config, (await by.logIn(session)).refresh_token ?? '');
});

// checks: 72
test('an ended grant is void although its tokens, which may be very many, are still stored', async () => {
  const scenario = { stack, call: callerOf('rest', stack.url) };
  const party = await relyingParty(scenario);
  const { session } = await loggedIn(scenario);
  const { refresh_token: token = '' } = await party.logIn(session, offline);
  expect((await scenario.call('grants.revoke', { id: party.id }, { session })).status).toBe(200);
  expect(await artifactsOf(party.id, '1 = 1')).toHaveLength(2);
  const refusal = () => refreshTokenGrant(party.config, token).catch(({ error }: ResponseBodyError) => error);
  expect(await refusal()).toBe('invalid_grant');
  const later = await party.logIn(session, offline);
  expect(await refusal()).toBe('invalid_grant');
  await refreshTokenGrant(party.config, later.refresh_token ?? '');
});

// checks: 72
test('a grant that ends while the user allows the application again stays void', async () => {
  const scenario = { stack, call: callerOf('rest', stack.url) };
  const party = await relyingParty(scenario);
  const { session } = await loggedIn(scenario);
  const { refresh_token: token = '' } = await party.logIn(session, offline);
  const other = await createConnection({ uri: String(stack.services[0]?.env['DATABASE_URL']) });
  try {
    await other.query('begin');
    // As `endGrants`, between the two statements of the new consent.
    await other.query(
      'update grants set session_id = id, logout_told_at = 1, expires_at = 0 where application_id = ?',
      [party.id],
    );
    const again = party.logIn(session, offline);
    const waits = "select 1 from information_schema.innodb_trx where trx_state = 'LOCK WAIT'";
    // The server refreshes this table only for readers that come less often than every 100 ms.
    await until(async () => (await stack.database(waits)).length > 0, { every: 150, what: 'the consent to wait' });
    await other.query('commit');
    const { refresh_token: next = '' } = await again;
    expect(await refreshTokenGrant(party.config, token).catch(({ error }: ResponseBodyError) => error)).toBe(
      'invalid_grant',
    );
    await refreshTokenGrant(party.config, next);
  } finally {
    await other.end();
  }
});
