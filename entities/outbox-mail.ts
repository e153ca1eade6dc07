import { defineEntity, p } from '@mikro-orm/core';
import type { TokenPurpose } from './one-time-token.ts';

/** A mail with a token carries the name of the token's purpose. */
export type MailKind = TokenPurpose | 'password-changed' | 'login-methods-removed';

/** pending → sent, dead (permanently refused) or dropped (no longer needed). */
export type MailState = 'pending' | 'sent' | 'dead' | 'dropped';

export const OutboxMailSchema = defineEntity({
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
 * A mail to be sent, or the request for one. A mail with a token begins as a request: there may be no user with
 * `email`, and `userId` and `tokenId` are null until the worker has found the user. `inbox` is the address without its
 * tag. `dueAt` is the time of the next attempt; the process that leases the row moves it forward. Neither the text
 * nor the token is stored: both are derived when the mail is sent.
 */
export class OutboxMail extends OutboxMailSchema.class {}

OutboxMailSchema.setClass(OutboxMail);
