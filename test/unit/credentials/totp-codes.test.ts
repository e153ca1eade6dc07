import { renderSVG } from 'uqr';
import { expect, test } from 'vitest';
import { newTotpSetup } from '../../../server/accounts/credentials/totp/codes.ts';

test('the QR code has a fixed mask, because choosing the best one takes six times as long', async () => {
  const { uri, qr } = await newTotpSetup({ issuer: 'accounts.example.test', label: 'ada.lovelace@example.test' });
  const withMask = (maskPattern: number) => renderSVG(uri, { ecc: 'M', border: 4, maskPattern });
  expect(Array.from({ length: 8 }, (_, mask) => withMask(mask)).filter((svg) => svg === qr)).toHaveLength(1);
  expect(qr).toBe(withMask(0));
});
