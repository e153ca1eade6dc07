import { type Caller, operator } from '../activity/caller.ts';
import type { Rate } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import { pageById } from '../page-by-id.ts';
import type { AllTables } from '../parts/database/contract.ts';
import type { Language } from '../texts/languages.ts';
import { asAdministrator } from './administrators.ts';
import type { Deps } from './deps.ts';
import { decide } from './identity-keys.ts';
import type { ListedInvitation } from './invitation-rows.ts';
import type { MailAdmission } from './mail-requests.ts';
import type { MailRequest } from './outbox-rows.ts';
import type { Session } from './sessions.ts';

export interface InvitationPage {
  invitations: ListedInvitation[];
  /** The cursor of the next page; absent on the last one. */
  nextCursor?: string;
}

interface Invited {
  /** Normalized. */
  email: string;
  language: Language | undefined;
}

interface Parts {
  admission: Pick<MailAdmission, 'isWithinLimits'>;
  rates: { mail: Rate };
}

/** Invitations of addresses to create an account, by administrators and by the operator. */
export const createInvitations = (deps: Deps, { admission, rates }: Parts) => {
  const { database, emailChanges, invitations, outbox, recordUnmailed, registration } = deps;

  /** Rejects with EMAIL_TAKEN, and past the limits on mails with RATE_LIMITED. `invitedBy` is null for the operator. */
  const inviteIn = async (
    tables: AllTables,
    email: string,
    invitedBy: string | null,
    request: MailRequest,
  ): Promise<ListedInvitation> => {
    const user = await tables.selectFrom('users').select('id').where('email', '=', email).executeTakeFirst();
    if (user || (await emailChanges.isReserved(tables, email))) throw new ServiceError('EMAIL_TAKEN');
    if (!(await admission.isWithinLimits(tables, { kind: 'invitation', email }, false))) {
      const message = 'This address has been mailed too often. Please retry later.';
      throw new ServiceError('RATE_LIMITED', { message, retryAfter: rates.mail.seconds });
    }
    const invitation = await invitations.issue(tables, email, invitedBy);
    await outbox.enqueue(tables, { kind: 'invitation', email, tokenId: invitation.id }, request);
    return invitation;
  };

  const requireInvitations = () => {
    if (!registration.takesInvitations) {
      throw new ServiceError('REGISTRATION_CLOSED', { message: 'Registration is closed, also to invited users' });
    }
  };

  return {
    /**
     * Mails an address a link by which one account can be created with it, in place of an older one. Rejects with
     * REGISTRATION_CLOSED where nobody is let in, with EMAIL_TAKEN if it is the address of an account, or was until lately,
     * and with RATE_LIMITED. The mail is in the `language`, else in that of the caller.
     */
    async invite(session: Session, { email, language }: Invited, caller: Caller): Promise<ListedInvitation> {
      requireInvitations();
      const { id } = session.user;
      return decide(() =>
        asAdministrator(deps, session, async (tables) => {
          const invitation = await inviteIn(tables, email, id, { language: () => language ?? caller.language() });
          await recordUnmailed(tables, id, { kind: 'user-invited', details: { email } }, caller);
          return invitation;
        }),
      );
    },

    /** The same by the operator, at the command line. No account has an event of it; that of the new user names the operator. */
    async inviteAsOperator(email: string): Promise<ListedInvitation> {
      requireInvitations();
      const invitation = await decide(() => database.change((tables) => inviteIn(tables, email, null, operator)));
      outbox.wake();
      return invitation;
    },

    /** Those that can be used, newest first. `cursor` must be the id of one. */
    async listInvitations({ limit, cursor }: { limit: number; cursor: string | undefined }): Promise<InvitationPage> {
      const found = await database.query((tables) => invitations.list(tables, { limit: limit + 1, cursor }));
      const { page: shown, ...next } = pageById(found, limit);
      return { invitations: shown, ...next };
    },

    /** Makes the mailed link void. Answers whether there was such an invitation. */
    revokeInvitation: (session: Session, id: string, caller: Caller): Promise<boolean> =>
      asAdministrator(deps, session, async (tables) => {
        const email = await invitations.revoke(tables, id);
        if (email === undefined) return false;
        const event = { kind: 'invitation-revoked' as const, details: { email } };
        await recordUnmailed(tables, session.user.id, event, caller);
        return true;
      }),
  };
};
