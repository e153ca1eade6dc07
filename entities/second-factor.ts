import { defineEntity, p } from '@mikro-orm/core';

export const TotpSchema = defineEntity({
  name: 'Totp',
  tableName: 'totps',
  properties: {
    userId: p.string().primary(),
    secret: p.string().hidden(),
    lastStep: p.bigint('number'),
    createdAt: p.bigint('number'),
  },
});

/**
 * The authenticator app of a user (RFC 6238), whose codes are asked for at each login. `secret` is encrypted; `lastStep` is the
 * time step of the last code that was accepted, so that each is accepted once.
 */
export class Totp extends TotpSchema.class {}

TotpSchema.setClass(Totp);

export const RecoveryCodeSchema = defineEntity({
  name: 'RecoveryCode',
  tableName: 'recovery_codes',
  properties: {
    id: p.string().primary(),
    userId: p.string(),
    codeHash: p.string().hidden(),
    createdAt: p.bigint('number'),
    usedAt: p.bigint('number').nullable(),
  },
});

/** A code in place of those of the authenticator app, accepted once. Only its hash is stored. */
export class RecoveryCode extends RecoveryCodeSchema.class {}

RecoveryCodeSchema.setClass(RecoveryCode);
