import { z } from 'zod';
import { shortText } from '../../server/accounts/users/index.ts';

/** The JSON of WebAuthn Level 3 (section 5.1), as browsers and `@simplewebauthn/browser` read and write it. */

/** At most `max` characters. */
const base64url = (max: number) =>
  shortText(max)
    .min(1)
    .regex(/^[A-Za-z0-9_-]*$/, 'Must be base64url without padding');

/** At most 1023 bytes. */
const credentialId = base64url(1364).meta({ example: 'SuUGGwkIIxJrTJbEmXyaUg' });
const type = z.literal('public-key');
/** JSON that contains a challenge and an origin. */
const clientDataJSON = base64url(4096);
const requirement = z.enum(['required', 'preferred', 'discouraged']);

/** The name of a transport; known ones have at most ten letters. */
const transport = z
  .string()
  .regex(/^[a-z-]{1,24}$/)
  .meta({ example: 'internal' });
/** The maximum that fits into a row. */
const transports = z.array(transport).max(10);
const descriptor = z.object({ id: z.string(), type: z.string(), transports: z.array(z.string()).optional() });

const options = z.object({
  challenge: z.string(),
  timeout: z.int().optional().meta({ description: 'Milliseconds' }),
});

/** PublicKeyCredentialCreationOptionsJSON. */
export const creationOptions = options.extend({
  rp: z.object({ id: z.string().optional(), name: z.string() }),
  user: z.object({ id: z.string(), name: z.string(), displayName: z.string() }),
  pubKeyCredParams: z.array(z.object({ type, alg: z.int() })),
  excludeCredentials: z.array(descriptor).optional(),
  authenticatorSelection: z
    .object({
      residentKey: requirement.optional(),
      requireResidentKey: z.boolean().optional(),
      userVerification: requirement.optional(),
    })
    .optional(),
  attestation: z.enum(['none', 'indirect', 'direct', 'enterprise']).optional(),
  extensions: z.object({ credProps: z.boolean().optional() }).optional(),
});

/** PublicKeyCredentialRequestOptionsJSON. */
export const requestOptions = options.extend({
  rpId: z.string().optional(),
  allowCredentials: z.array(descriptor).optional(),
  userVerification: requirement.optional(),
});

const credential = z.object({ id: credentialId, rawId: credentialId, type });

/** RegistrationResponseJSON: the fields that are used. */
export const registrationResponse = credential.extend({
  response: z.object({ clientDataJSON, attestationObject: base64url(16_384), transports: transports.optional() }),
});

/** AuthenticationResponseJSON: the fields that are used. */
export const assertionResponse = credential.extend({
  response: z.object({
    clientDataJSON,
    authenticatorData: base64url(4096),
    signature: base64url(4096),
    userHandle: z.string().max(88).nullish().meta({ description: 'At most 64 bytes, in base64url' }),
  }),
});
