import { expect, test } from 'vitest';
import { isHostedBy } from '../../../server/parts/identity-provider/oidc.ts';

const GOOGLE = 'https://accounts.google.com';

test.each([
  [GOOGLE, { email: 'ada@gmail.com' }, true],
  [GOOGLE, { email: 'Ada@GMail.com' }, true],
  [GOOGLE, { email: 'ada@firm.example', hd: 'firm.example' }, true],
  [GOOGLE, { email: 'ada@firm.example' }, false],
  [GOOGLE, { email: 'ada@firm.example', hd: '' }, false],
  [GOOGLE, { email: 'ada@gmail.com.example' }, false],
  [GOOGLE, { email: 'ada@notgmail.com' }, false],
  [GOOGLE, {}, false],
  ['https://gitlab.com', { email: 'ada@firm.example' }, true],
])('%s may vouch for the address of %j: %s', (issuer, stated, expected) => {
  expect(isHostedBy(issuer, stated)).toBe(expected);
});
