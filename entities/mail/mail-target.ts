import { defineEntity, p } from '@mikro-orm/core';

export const MailTargetSchema = defineEntity({
  name: 'MailTarget',
  tableName: 'mail_targets',
  properties: {
    mailId: p.string().primary(),
    returnTo: p.string(),
  },
});

/** The `returnTo` of a requested mail, until its token is issued. It goes with the mail. */
export class MailTarget extends MailTargetSchema.class {}

MailTargetSchema.setClass(MailTarget);
