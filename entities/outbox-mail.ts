import { defineEntity, p } from '@mikro-orm/core';
import type { TokenPurpose } from './one-time-token.ts';

/** A mail with a token carries the name of the token's purpose. */
export type MailKind = TokenPurpose | 'password-changed' | 'login-methods-removed';

/** pending → sent; or refused for good (dead), or of no use any more (dropped). */
export type MailState = 'pending' | 'sent' | 'dead' | 'dropped';

const OutboxMailSchema = defineEntity({
  name: 'OutboxMail',
  tableName: 'outbox',
  properties: {
    id: p.string().primary(),
    kind: p.string().$type<MailKind>(),
    email: p.string(),
    inbox: p.string(),
    userId: p.string().nullable(),
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
 * A mail to be sent, or the request for one. A mail with a token begins as a request: `email` may be nobody's, and `userId`
 * and `tokenId` are null until the worker has found its user. `inbox` is the address without its tag. `dueAt` is when the
 * row may next be tried; a process that takes it moves that forward, so it is the lease as well. No text and no token is
 * kept: both are made when the mail goes out.
 */
export class OutboxMail extends OutboxMailSchema.class {}

OutboxMailSchema.setClass(OutboxMail);
