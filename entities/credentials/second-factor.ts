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
 * A user's authenticator app (RFC 6238), required at each login. `secret` is encrypted; `lastStep` is the time step of
 * the last accepted code, so that each code is accepted once.
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

/** A single-use code instead of one from the authenticator app. Only its hash is stored. */
export class RecoveryCode extends RecoveryCodeSchema.class {}

RecoveryCodeSchema.setClass(RecoveryCode);
