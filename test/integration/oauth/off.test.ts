import { expect, test } from 'vitest';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { createRules, openParts } from '../../../server/assemble.ts';
import { parseConfig } from '../../../server/config/index.ts';
import { createSecrets } from '../../../server/secrets.ts';
import { createLog } from '../../../server/telemetry/log.ts';
import { readTexts } from '../../../server/texts/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

test('without an application no call makes keys', async () => {
  const config = parseConfig({ DATA_DIR: temporaryDirectory('oauth-off'), LOG_LEVEL: 'silent' });
  const log = await createLog(config);
  const secrets = createSecrets(['x'.repeat(32)]);
  const parts = await openParts(config, { secrets, log });
  try {
    await parts.database.migrate();
    const given = { identityProviders: new Map(), secrets, texts: readTexts(undefined), log };
    const { oauth } = createRules(config, parts, given);
    expect(await oauth.isBegunBy('x', 'y')).toBe(false);
    const answer = oauth.proceed('x', { browser: 'y', session: null }, {}, backgroundJob);
    await expect(answer).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const keys = parts.database.query((tables) => tables.selectFrom('signing_keys').select('id').execute());
    expect(await keys).toEqual([]);
  } finally {
    await parts.close();
  }
});
