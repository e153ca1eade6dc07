import type { Activity } from '../../activity/index.ts';
import type { Config } from '../../config/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import type { MailTransport } from '../../parts/mail/contract.ts';
import type { Secrets } from '../../secrets.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Texts } from '../../texts/index.ts';
import type { Users } from '../users/index.ts';
import { createMailAdmission } from './admission.ts';
import { createMailComposer, type MethodsOf } from './composer.ts';
import { createInboxTurns } from './inbox-turns.ts';
import { createEvents } from './notices.ts';
import { createOutbox } from './outbox.ts';
import { createEmailChangeRows } from './tokens/email-changes.ts';
import { createEmailCodes } from './tokens/email-codes.ts';
import { createInvitationRows } from './tokens/invitations.ts';
import { createOneTimeTokens } from './tokens/one-time.ts';

export type { MailAdmission } from './admission.ts';
export type { MethodsOf } from './composer.ts';
export { AFTER_NOT_ME, mailKinds } from './kinds.ts';
export { type ReportedLogin, toDetail } from './new-device.ts';
export type { RecordEvent } from './notices.ts';
export type { Outbox } from './outbox.ts';
export { exportedDetail, type MailRequest } from './outbox-rows.ts';
export { type EmailChangeRows, reservedAmong } from './tokens/email-changes.ts';
export type { EmailCodes, MailedCode } from './tokens/email-codes.ts';
export { entryFor, type InvitationRows, type InvitedBy, type ListedInvitation } from './tokens/invitations.ts';
export type { OneTimeTokens } from './tokens/one-time.ts';
export { type TokenScope, withToken } from './tokens/use.ts';
export { inUtc } from './words.ts';

interface Parts {
  database: Database;
  activity: Activity;
  transport: MailTransport;
  users: Pick<Users, 'find' | 'languagesOf' | 'registration'>;
  methodsOf: MethodsOf;
  secrets: Secrets;
  texts: Texts;
  log: Log;
}

/** The queue of mails, the events that mails tell of, and the tokens in their links. */
export function createMail(
  config: Config,
  { database, activity, transport, users, methodsOf, secrets, texts, log }: Parts,
) {
  const { appUrl, brand, siteName, timeZone, rates } = config;
  const tokens = createOneTimeTokens({ database, secrets });
  const emailChanges = createEmailChangeRows({ database, secrets });
  const invitations = createInvitationRows({ database, secrets });
  const emailCodes = createEmailCodes(secrets);
  const linked = { tokens, emailChanges, invitations, emailCodes };
  const setting = { appUrl, site: siteName, brand, timeZone, texts };
  const compose = createMailComposer({ ...setting, database, users, methodsOf, ...linked });
  const turns = createInboxTurns();
  const admission = createMailAdmission({ database, ...linked, registration: users.registration, rates, turns });
  const outbox = createOutbox({ database, mail: transport, rates, admission, turns, compose, log });
  return {
    outbox,
    admission,
    ...linked,
    record: createEvents(activity, outbox, rates.change),
    sweeps: [outbox.sweep, tokens.sweep, emailChanges.sweep, invitations.sweep],
  };
}

export type MailRules = ReturnType<typeof createMail>;
