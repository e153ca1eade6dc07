import { refreshTokenGrant } from 'openid-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callerOf } from '../../contract/rig/callers.ts';
import { relyingParty } from '../../contract/rig/relying-party.ts';
import { loggedIn } from '../../contract/rig/scenario.ts';
import { type Stack, startStack } from '../../rig/stack.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack('real');
});
afterAll(() => stack?.stop());

test('a refresh token whose successor cannot be stored is not used', async () => {
  const scenario = { stack, call: callerOf('rest', stack.url) };
  const party = await relyingParty(scenario);
  const { session } = await loggedIn(scenario);
  const { refresh_token: token = '' } = await party.logIn(session, {
    scope: 'openid offline_access',
    prompt: 'consent',
  });
  await stack.database(
    "create trigger refuse before insert on oauth_artifacts for each row signal sqlstate '45000' set message_text = 'refused'",
  );
  await expect(refreshTokenGrant(party.config, token)).rejects.toThrow('unexpected HTTP response status');
  await stack.database('drop trigger refuse');
  // The code.
  expect(await stack.database('select consumed_at from oauth_artifacts where consumed_at is not null')).toHaveLength(1);
  await refreshTokenGrant(party.config, token);
});
