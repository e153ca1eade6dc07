/*
 * `credentialId`, which is unique, and `publicKey` (COSE) are in base64url. `transports` are the browser's, separated
 * by commas. `aaguid` names the model of the authenticator, `name` is the user's choice.
 */

import { defineEntity, p } from '@mikro-orm/core';

export const PasskeySchema = defineEntity({
  name: 'Passkey',
  tableName: 'passkeys',
  properties: {
    id: p.string().primary(),
    userId: p.string(),
    credentialId: p.string(),
    publicKey: p.string(),
    signCount: p.bigint('number'),
    transports: p.string(),
    backupEligible: p.boolean(),
    backedUp: p.boolean(),
    aaguid: p.string(),
    name: p.string(),
    proven: p.boolean(),
    createdAt: p.bigint('number'),
    lastUsedAt: p.bigint('number').nullable(),
  },
});

/**
 * A passkey (WebAuthn Level 3). Like an identity it is *proven* once it is certain that the owner of the inbox added
 * it.
 */
export class Passkey extends PasskeySchema.class {}

PasskeySchema.setClass(Passkey);
