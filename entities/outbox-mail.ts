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
    createdAt: p.bigint('number'),
    traceparent: p.string().nullable(),
    language: p.string().nullable(),
  },
});

/**
 * A mail to be sent, or the request for one. A mail with a token begins as a request: there may be no user with
 * `email`, and `userId` and `tokenId` are null until the worker has found the user. `kind` is one of those in
 * `server/accounts/mail-kinds.ts`. `inbox` is the address without its tag. `dueAt` is when the row may be tried next; a
 * lease moves it. Neither text nor token is stored: both are made when the mail is sent.
 * `traceparent` is the trace that the delivery continues, `language` that of the request which the mail answers.
 */
export class OutboxMail extends OutboxMailSchema.class {}

OutboxMailSchema.setClass(OutboxMail);
