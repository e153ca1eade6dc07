import { TOTP } from 'otpauth';
import { renderSVG } from 'uqr';
import { expect, test } from 'vitest';
import { newTotpSetup, stepOf } from '../../../server/accounts/credentials/totp/codes.ts';

test('the QR code has a fixed mask, because choosing the best one takes six times as long', async () => {
  const { uri, qr } = await newTotpSetup({ issuer: 'accounts.example.test', label: 'ada.lovelace@example.test' });
  const withMask = (maskPattern: number) => renderSVG(uri, { ecc: 'M', border: 4, maskPattern });
  expect(Array.from({ length: 8 }, (_, mask) => withMask(mask)).filter((svg) => svg === qr)).toHaveLength(1);
  expect(qr).toBe(withMask(0));
});

const PERIOD_MS = 30_000;
test.each([
  [-2, undefined],
  [-1, 999],
  [0, 1000],
  [1, 1001],
  [2, undefined],
])('in the step 1000 the code of %i steps later is of the step %s', async (later, step) => {
  const { secret } = await newTotpSetup({ issuer: 'accounts.example.test', label: 'ada@example.test' });
  const code = new TOTP({ secret }).generate({ timestamp: (1000 + later) * PERIOD_MS });
  for (const now of [1000 * PERIOD_MS, 1001 * PERIOD_MS - 1]) expect(await stepOf(code, secret, now)).toBe(step);
});
