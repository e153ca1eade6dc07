/*
 * A mail with a token begins as a request: a user with `email` may not exist, and `userId` and `tokenId` are null until
 * the worker has found the user. `kind` is one of `server/accounts/mail/kinds.ts`. `inbox` is the address without its
 * tag. `dueAt` is when the row may be tried next; a lease moves it. Of the due rows, the lowest `turn` is first. The
 * database computes `admittedAt`, the `createdAt` of a mail with a token: limits count these. `traceparent` is the
 * trace that the delivery continues, `language` that of the request behind the mail.
 */

import { defineEntity, p } from '@mikro-orm/core';
/** pending → sent, dead (permanently refused) or dropped (expired, superseded or past a limit). */
export type MailState = 'pending' | 'sent' | 'dead' | 'dropped';

export const OutboxMailSchema = defineEntity({
  name: 'OutboxMail',
  tableName: 'outbox',
  properties: {
    id: p.string().primary(),
    kind: p.string(),
    email: p.string(),
    inbox: p.string(),
    userId: p.string().nullable(),
    tokenId: p.string().nullable(),
    detail: p.string().nullable(),
    state: p.string().$type<MailState>(),
    attempts: p.integer(),
    dueAt: p.bigint('number'),
    expiresAt: p.bigint('number'),
    turn: p.integer().default(0),
    createdAt: p.bigint('number'),
    admittedAt: p.bigint('number').nullable(),
    traceparent: p.string().nullable(),
    language: p.string().nullable(),
  },
});

/**
 * A mail to be sent, or the request for one. Text and token are not stored: both are created when it is sent.
 */
export class OutboxMail extends OutboxMailSchema.class {}

OutboxMailSchema.setClass(OutboxMail);
