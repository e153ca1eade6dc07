import type { UsersInvitationsOutput } from 'account-client';
import { useRef, useState } from 'preact/hooks';
import { api, refusalIn } from '../../api.ts';
import { Button, Notice } from '../../form/form.tsx';
import { useAction } from '../../form/use-action.ts';
import { date } from '../../language/format.ts';
import { markup, text } from '../../language/texts.ts';
import { usePages } from '../../use-pages.ts';
import { Outcome } from '../dashboard/outcome.tsx';
import { useRecentCredential } from '../dashboard/security/recent-credential.tsx';
import { ShowMore } from '../show-more.tsx';
import { addressOf } from './address.ts';
import './admin.css';

type Invitation = UsersInvitationsOutput['data'][number];

const A_PAGE = 20;

export const readInvitations = (cursor?: string) =>
  api.users.invitations.query({ limit: A_PAGE, ...(cursor && { cursor }) });

/** The open invitations. Without `first` it loads them. */
export function Invitations({ first }: { first: UsersInvitationsOutput | undefined }) {
  const { items, ...pages } = usePages(readInvitations, first);
  /** The ids of the invitations revoked here. */
  const [revoked, setRevoked] = useState<string[]>([]);
  const [notice, setNotice] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);

  const open = items.filter(({ id }) => !revoked.includes(id));
  return (
    <section class="card" aria-labelledby="invitations">
      <h2 id="invitations" ref={heading} tabIndex={-1}>
        {text('admin.invitations.title')}
      </h2>
      <div class="stack">
        {notice && <Notice key={revoked.length}>{notice}</Notice>}
        {open.length === 0 && !pages.hasMore && <p class="hint">{text('admin.invitations.none')}</p>}
        <ul class="entries">
          {open.map((invitation) => (
            <li key={invitation.id} class="takes">
              <Open
                invitation={invitation}
                onGone={(sentence) => {
                  setRevoked([...revoked, invitation.id]);
                  setNotice(sentence);
                  // The pressed button is gone.
                  heading.current?.focus();
                }}
              />
            </li>
          ))}
        </ul>
        <ShowMore {...pages} />
      </div>
    </section>
  );
}

interface OpenProps {
  invitation: Invitation;
  /** Called with the message about the outcome. */
  onGone(sentence: string): void;
}

function Open({ invitation: { id, email, invitedBy, expiresAt }, onGone }: OpenProps) {
  const { busy, act, ...outcome } = useAction();
  const { withRecentCredential, question, isAsking } = useRecentCredential();

  const revoke = () =>
    act('revoke', () =>
      withRecentCredential(
        () => wasOpen(api.users.revokeInvitation.mutate({ id })),
        (isRevoked) => {
          onGone(text(isRevoked ? 'admin.invitations.revoked' : 'admin.invitations.gone', { email }));
          return undefined;
        },
      ),
    );

  const until = date(expiresAt);
  return (
    <>
      <div id={`invitation-${id}`}>
        <strong>{email}</strong>
        <p class="hint">
          {invitedBy === undefined
            ? text('admin.invitations.byOperator', { date: until })
            : markup('admin.invitations.byAdministrator', {
                link: (label) => <a href={addressOf({ user: invitedBy })}>{label}</a>,
                date: until,
              })}
        </p>
      </div>
      <Button
        kind="secondary"
        isBusy={busy !== ''}
        isAsking={isAsking}
        busy={text('admin.invitations.revoking')}
        describedBy={`invitation-${id}`}
        onClick={() => void revoke()}
      >
        {text('admin.invitations.revoke')}
      </Button>
      {question}
      <Outcome {...outcome} />
    </>
  );
}

/** Whether the invitation was still open: it may have been used since the page was loaded. */
const wasOpen = (revocation: Promise<unknown>): Promise<boolean> =>
  revocation.then(
    () => true,
    (error: unknown) => {
      if (refusalIn(error).code !== 'NOT_FOUND') throw error;
      return false;
    },
  );
