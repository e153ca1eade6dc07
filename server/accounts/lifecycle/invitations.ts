import { type Caller, operator } from '../../activity/caller.ts';
import type { Activity } from '../../activity/index.ts';
import { limitVariable, type Rate } from '../../config/index.ts';
import { ServiceError } from '../../errors.ts';
import { pageById } from '../../lib/pagination.ts';
import type { Limits } from '../../limits/index.ts';
import { type AllTables, type Database, retryOnDuplicate } from '../../parts/database/contract.ts';
import type { Language } from '../../shared/texts/languages.ts';
import type {
  EmailChangeRows,
  InvitationRows,
  ListedInvitation,
  MailAdmission,
  MailRequest,
  Outbox,
} from '../mail/index.ts';
import { asAdministrator, type Session } from '../sessions/index.ts';
import type { RegistrationPolicy } from '../users/index.ts';

interface InvitationPage {
  invitations: ListedInvitation[];
  /** The cursor of the next page; absent on the last one. */
  nextCursor?: string;
}

interface Invited {
  /** Normalized. */
  email: string;
  /** Where the page of the invitation leads. */
  returnTo: string | undefined;
  language: Language | undefined;
}

interface Parts {
  database: Database;
  emailChanges: EmailChangeRows;
  invitations: InvitationRows;
  limits: Limits;
  outbox: Outbox;
  /** Inserts an event without a mail. */
  recordUnmailed: Activity['record'];
  registration: RegistrationPolicy;
  admission: Pick<MailAdmission, 'isWithinLimits'>;
  rates: { mail: Rate };
}

/** Invitations to create an account, by administrators and by the operator. */
export const createInvitations = (parts: Parts) => {
  const { database, emailChanges, invitations, limits, outbox, recordUnmailed, registration, admission, rates } = parts;

  /** EMAIL_TAKEN; RATE_LIMITED past the limits of mails. `invitedBy` is null for the operator. */
  const inviteIn = async (
    tables: AllTables,
    { email, invitedBy, returnTo }: { email: string; invitedBy: string | null; returnTo: string | null },
    request: MailRequest,
  ): Promise<ListedInvitation> => {
    const user = await tables.selectFrom('users').select('id').where('email', '=', email).executeTakeFirst();
    if (user || (await emailChanges.isReserved(tables, email))) throw new ServiceError('EMAIL_TAKEN');
    if (!(await admission.isWithinLimits(tables, { kind: 'invitation', email }, false))) {
      const message = 'This address has been mailed too often. Please retry later.';
      const limit = { ...rates.mail, variable: limitVariable('mail') };
      throw new ServiceError('RATE_LIMITED', { message, retryAfter: rates.mail.seconds, limit });
    }
    const invitation = await invitations.issue(tables, { email, invitedBy, returnTo });
    await outbox.enqueue(tables, { kind: 'invitation', email, tokenId: invitation.id }, request);
    return invitation;
  };

  const requireInvitations = () => {
    if (!registration.takesInvitations) {
      throw new ServiceError('REGISTRATION_CLOSED', { message: 'Registration is closed, even for invited users' });
    }
  };

  return {
    /**
     * Mails an invitation for one account, which replaces an older one. In `language`, else the caller's.
     * REGISTRATION_CLOSED without registration; EMAIL_TAKEN also for a reserved address; RATE_LIMITED.
     */
    async invite(session: Session, { email, language, returnTo }: Invited, caller: Caller): Promise<ListedInvitation> {
      requireInvitations();
      const { id } = session.user;
      await limits.enforce('administration', id);
      return retryOnDuplicate(() =>
        asAdministrator(parts, session, async (tables) => {
          const request = { actorId: id, language: () => language ?? caller.language() };
          const invitation = await inviteIn(tables, { email, invitedBy: id, returnTo: returnTo ?? null }, request);
          await recordUnmailed(tables, id, { kind: 'user-invited', details: { email } }, caller);
          return invitation;
        }),
      );
    },

    /** The operator's invitation, from the command line. Recorded only in the event of the new account. */
    async inviteAsOperator(email: string): Promise<ListedInvitation> {
      requireInvitations();
      const invitation = await retryOnDuplicate(() =>
        database.change((tables) => inviteIn(tables, { email, invitedBy: null, returnTo: null }, operator)),
      );
      outbox.wake();
      return invitation;
    },

    /** Usable invitations, newest first. `cursor` must be the id of one. */
    async listInvitations({ limit, cursor }: { limit: number; cursor: string | undefined }): Promise<InvitationPage> {
      const found = await database.query((tables) => invitations.list(tables, { limit: limit + 1, cursor }));
      const { page: shown, ...next } = pageById(found, limit);
      return { invitations: shown, ...next };
    },

    /** Invalidates the mailed link. Resolves to whether the invitation existed. */
    revokeInvitation: (session: Session, id: string, caller: Caller): Promise<boolean> =>
      asAdministrator(parts, session, async (tables) => {
        const email = await invitations.revoke(tables, id);
        if (email === undefined) return false;
        const event = { kind: 'invitation-revoked' as const, details: { email } };
        await recordUnmailed(tables, session.user.id, event, caller);
        return true;
      }),
  };
};
