import { afterAll, beforeAll, expect, test } from 'vitest';
import { createChallenges } from '../../../server/challenge/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import type { ServiceError } from '../../../server/errors.ts';
import type { KeyValueStore } from '../../../server/parts/key-value/contract.ts';
import { openKeyValueStore } from '../../../server/parts/key-value/index.ts';
import { createSecrets } from '../../../server/secrets.ts';
import { type Challenge, solve } from '../../contract/rig/challenge.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

const FLOOD = 8;
const config = parseConfig({
  DATA_DIR: temporaryDirectory('challenges'),
  CHALLENGE: 'auto',
  LIMIT_FLOOD: `${FLOOD}/900`,
  LIMIT_LOGIN: '2/900',
});
let store: KeyValueStore;
beforeAll(async () => {
  store = await openKeyValueStore(config, {} as never);
});
afterAll(() => store.close());

test('solutions past the limit of one address make no work for others', async () => {
  const challenges = createChallenges(config, { store, secrets: createSecrets(['x'.repeat(32)]) });
  const login = (clientAddress: string, solution = '') =>
    challenges?.admit({ procedure: 'auth.login', clientAddress, solution }).then(
      () => undefined,
      (error: unknown) => (error as ServiceError).details?.['challenge'] as Challenge | undefined,
    );
  const [attacker, other] = ['192.0.2.1', '198.51.100.1'];
  const demanded = await Promise.all(Array.from({ length: FLOOD }, () => login(attacker)));
  const solutions = demanded.filter((challenge) => challenge !== undefined).map(solve);
  expect(solutions.length).toBeGreaterThan(FLOOD / 2);
  const before = await login(attacker);
  for (const solution of solutions) await login(attacker, solution);
  expect(await login(other)).toBeUndefined();
  // Nor does its own work grow by calls that its limit refuses: it doubles twice from half of the limit to all of it.
  expect((await login(attacker))?.maxnumber).toBeLessThanOrEqual(4 * (before?.maxnumber ?? 0));
});
