import { expect, test } from 'vitest';
import { createSecrets } from '../../../server/secrets.ts';

const [OLD, NEW] = ['o'.repeat(32), 'n'.repeat(32)];
const OWNER = 'user_01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c';
const TEXT = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';

test('ciphertext fits its column, reveals nothing and differs each time', () => {
  const { seal, open } = createSecrets([NEW]);
  const [one, other] = [seal('totp', OWNER, TEXT), seal('totp', OWNER, TEXT)];
  expect(one).not.toBe(other);
  for (const sealed of [one, other]) {
    expect(sealed).toMatch(/^[\w-]{8}\.[\w-]+$/);
    expect(sealed.length).toBeLessThanOrEqual(255);
    expect(open('totp', OWNER, sealed)).toEqual({ text: TEXT, isCurrent: true });
  }
});

test('a former secret decrypts and asks for re-encryption; a removed one decrypts nothing', () => {
  const sealed = createSecrets([OLD]).seal('totp', OWNER, TEXT);
  expect(createSecrets([NEW, OLD]).open('totp', OWNER, sealed)).toEqual({ text: TEXT, isCurrent: false });
  expect(createSecrets([NEW]).open('totp', OWNER, sealed)).toBeUndefined();
});

test('nothing decrypts for another owner or after any change', () => {
  const { seal, open } = createSecrets([NEW, OLD]);
  const sealed = seal('totp', OWNER, TEXT);
  expect(open('totp', `${OWNER}d`, sealed)).toBeUndefined();
  const other = (character: string) => (character === 'A' ? 'B' : 'A');
  // The unused bits of the last character have no meaning.
  for (let i = 0; i < sealed.length - 1; i++) {
    const changed = sealed.slice(0, i) + other(sealed[i] ?? '') + sealed.slice(i + 1);
    expect(open('totp', OWNER, changed), `at ${i}`).toBeUndefined();
  }
  const [id] = sealed.split('.');
  for (const broken of ['', '.', `${id}`, `${id}.`, `${id}.AAAA`, sealed.slice(0, 45)]) {
    expect(open('totp', OWNER, broken)).toBeUndefined();
  }
});
