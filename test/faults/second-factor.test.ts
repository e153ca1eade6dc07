import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { callerOf, refusalsOfBatch } from '../contract/rig/callers.ts';
import { expectRefusal, isAlive, loggedIn, onStack, PASSWORD, sessionIn } from '../contract/rig/scenario.ts';
import {
  codeOf,
  firstStep,
  forgetLastCode,
  pendingIn,
  setUpApp,
  withApp,
  wrongCode,
} from '../contract/rig/totp-scenario.ts';
import { slowClock } from '../rig/process/clock.ts';
import { type Service, startService } from '../rig/process/service.ts';

/** Second factors on several instances, in batches, and during a rotation of APP_SECRET. */
const MINUTE = 60_000;
const ROUNDS = 10;
const [OLD, NEW] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];

onStack(
  'real',
  (stack) => {
    const at = (service: Service) => callerOf('rest', service.url);
    const both = () => stack().services as [Service, Service];

    test(`a code and a pending login work once across two instances, ${ROUNDS} rounds`, async () => {
      const [first, second] = both();
      const call = at(first);
      const { secret, recoveryCodes, ...person } = await withApp({ call, stack: stack() });
      for (let round = 0; round < ROUNDS; round++) {
        await forgetLastCode(stack(), person.id);
        const [one, other] = [await firstStep(call, person), await firstStep(call, person)];
        const code = codeOf(secret);
        const replies = await Promise.all([
          at(first)('auth.secondFactor', { code }, { pending: one }),
          at(second)('auth.secondFactor', { code }, { pending: other }),
        ]);
        expect(replies.map(({ status }) => status).sort()).toEqual([200, 401]);
      }
      const [recoveryCode] = recoveryCodes;
      const pending = await Promise.all([firstStep(call, person), firstStep(call, person)]);
      const replies = await Promise.all(
        both().map((service, i) => at(service)('auth.secondFactor', { recoveryCode }, { pending: pending[i] })),
      );
      expect(replies.map(({ status }) => status).sort()).toEqual([200, 401]);
    });

    test('codes are checked with the clock of the database, so a wrong clock of an instance does not matter', async () => {
      const { PORT, DATA_DIR, ...env } = both()[0].env;
      const slow = await startService({ env: { ...env, ...slowClock(10 * MINUTE) } });
      try {
        const call = at(slow);
        const { secret, ...person } = await withApp({ call: at(both()[0]), stack: stack() });
        const pending = await firstStep(at(both()[0]), person);
        const reply = await call('auth.secondFactor', { code: codeOf(secret) }, { pending });
        expect(await isAlive(at(both()[0]), sessionIn(reply) ?? '')).toBe(true);
        await setUpApp({ call, stack: stack() }, await loggedIn({ call: at(both()[0]), stack: stack() }));
      } finally {
        await slow.stop();
      }
    });

    test('of a thousand codes in batches five are checked', async () => {
      const call = at(both()[0]);
      const { secret, ...person } = await withApp({ call, stack: stack() });
      const pending = await firstStep(call, person);
      const code = wrongCode(secret);
      const guess = (calls: number) =>
        refusalsOfBatch(both()[1].url, 'auth.secondFactor', Array(calls).fill({ code }), { pending });
      // More than ten in a batch are refused, whatever their number.
      expect(await Promise.all([guess(200), guess(1000)])).toEqual([[400], [431]]);
      const codes = (await Promise.all(Array.from({ length: 100 }, () => guess(10)))).flat();
      expect(codes.filter((one) => one === 'INVALID_CODE')).toHaveLength(5);
      expect(codes.filter((one) => one === 'UNAUTHENTICATED')).toHaveLength(995);
      expectRefusal(await call('auth.secondFactor', { code: codeOf(secret) }, { pending }), 401, 'UNAUTHENTICATED');
    });
  },
  { instances: 2, env: { LIMIT_CODE: '1000/3600' } },
);

describe('a rotation of APP_SECRET', () => {
  onStack(
    'embedded',
    (stack) => {
      test('keeps an app working and re-encrypts its secret at the next code; with a lost secret it is refused', async () => {
        const [service] = stack().services as [Service];
        const call = callerOf('rest', stack().url);
        const used = await withApp({ call, stack: stack() });
        const unused = await withApp({ call, stack: stack() });
        const waiting = await loggedIn({ call, stack: stack() });
        const setUp = (await call('totp.begin', undefined, { session: waiting.session })).data;
        const sealed = async ({ id }: { id: string }) =>
          (await stack().database<{ secret: string }>('select secret from totps where user_id = ?', [id]))[0]?.secret;
        const logIn = async (user: typeof used, code: string) => {
          await forgetLastCode(stack(), user.id);
          return call('auth.secondFactor', { code }, { pending: await firstStep(call, user) });
        };
        const before = await sealed(used);

        await service.restart({ env: { APP_SECRET: `${NEW},${OLD}` } });
        expect(await sealed(used)).toBe(before);
        expect((await logIn(used, codeOf(used.secret))).status).toBe(200);
        expect(await sealed(used)).not.toBe(before);
        const enabled = await call('totp.enable', { code: codeOf(setUp.secret) }, { session: waiting.session });
        expect(enabled.status).toBe(200);

        await service.restart({ env: { APP_SECRET: NEW } });
        expect((await logIn(used, codeOf(used.secret))).status).toBe(200);
        expect((await logIn({ ...waiting, ...setUp, recoveryCodes: [] }, codeOf(setUp.secret))).status).toBe(200);
        const refused = await logIn(unused, codeOf(unused.secret));
        expectRefusal(refused, 401, 'INVALID_CODE');
        expect(service.output()).toContain('the secret of an authenticator app cannot be decrypted');
        const pending = pendingIn(await call('auth.login', { email: unused.email, password: PASSWORD }));
        const [recoveryCode] = unused.recoveryCodes;
        expect((await call('auth.secondFactor', { recoveryCode }, { pending })).status).toBe(200);
      });

      test('one user’s secret does not work in another user’s row', async () => {
        const call = callerOf('rest', stack().url);
        const [ada, eve] = [await withApp({ call, stack: stack() }), await withApp({ call, stack: stack() })];
        const [row] = await stack().database<{ secret: string }>('select secret from totps where user_id = ?', [
          eve.id,
        ]);
        await stack().database('update totps set secret = ? where user_id = ?', [row?.secret ?? '', ada.id]);
        const pending = await firstStep(call, ada);
        expectRefusal(await call('auth.secondFactor', { code: codeOf(eve.secret) }, { pending }), 401, 'INVALID_CODE');
      });
    },
    { env: { APP_SECRET: OLD } },
  );
});
