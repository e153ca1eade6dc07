import { expect, test } from 'vitest';
import { assertionAlgorithms } from '../../../server/applications/public-keys.ts';
import { proofAlgorithms } from '../../../server/lib/credential.ts';

/** Elliptic curves of 256 bits, or RSA, with SHA-256 or SHA-512. */
const approved = ['ES256', 'EdDSA', 'Ed25519', 'RS256', 'PS256'];

test('signatures of applications are accepted by approved algorithms only, never by a shared secret', () => {
  expect([...proofAlgorithms, ...assertionAlgorithms].filter((name) => !approved.includes(name))).toEqual([]);
});
