import { defineEntity, p } from '@mikro-orm/core';

export type MailKind = 'verify-email' | 'reset-password' | 'password-changed' | 'login-methods-removed';

/** pending → sent; or refused for good (dead), or not worth sending any more (dropped). */
export type MailState = 'pending' | 'sent' | 'dead' | 'dropped';

const OutboxMailSchema = defineEntity({
  name: 'OutboxMail',
  tableName: 'outbox',
  properties: {
    id: p.string().primary(),
    kind: p.string().$type<MailKind>(),
    userId: p.string(),
    tokenId: p.string().nullable(),
    detail: p.string().nullable(),
    state: p.string().$type<MailState>(),
    attempts: p.integer(),
    dueAt: p.bigint('number'),
    expiresAt: p.bigint('number'),
    createdAt: p.bigint('number'),
  },
});

/**
 * A mail that is owed, written in the transaction of what it announces. `dueAt` is when it may next be tried; whoever takes
 * it moves that forward, so it is the lease as well. No text and no token is kept: both are made when the mail goes out.
 */
export class OutboxMail extends OutboxMailSchema.class {}

OutboxMailSchema.setClass(OutboxMail);
