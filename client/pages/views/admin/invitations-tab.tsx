import { useState } from 'preact/hooks';
import { text } from '../../language/texts.ts';
import { AdminPage } from './admin-page.tsx';
import { Invitations, readInvitations } from './invitations.tsx';
import { Invite } from './invite.tsx';
import { Tabs } from './tabs.tsx';

/** The open invitations, and the form for a new one. */
export function InvitationsTab() {
  const [invited, setInvited] = useState(0);
  return (
    <AdminPage title={() => text('admin.nav.users')} read={() => readInvitations()}>
      {(first) => (
        <>
          <Tabs current="invitations" />
          <Invite onInvited={() => setInvited((count) => count + 1)} />
          <Invitations key={invited} first={invited === 0 ? first : undefined} />
        </>
      )}
    </AdminPage>
  );
}
