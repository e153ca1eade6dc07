import { expect, test } from 'vitest';
import { nameOfAuthenticator } from '../../../server/accounts/credentials/passkeys/names.ts';

test.each([
  ['fbfc3007-154e-4ecc-8c0b-6e020557d7bd', 'Apple Passwords'],
  ['ea9b8d66-4d01-1d21-3ce4-b6b48cb575d4', 'Google Password Manager'],
  ['08987058-cadc-4b81-b6e1-30de50dcbe96', 'Windows Hello'],
  ['bada5566-a7aa-401f-bd96-45619a55120d', '1Password'],
  ['2fc0579f-8113-47ea-b116-bb5a8db9202a', 'YubiKey 5'],
  ['00000000-0000-0000-0000-000000000000', 'Passkey'],
])('a passkey of %s is named %j', (aaguid, name) => expect(nameOfAuthenticator(aaguid)).toBe(name));
