import { InvitationsTab } from './invitations-tab.tsx';
import { ManagedUser } from './managed-user.tsx';
import { tabOf } from './tabs.tsx';
import { Users } from './users.tsx';

const id = new URLSearchParams(location.search).get('user');

/** The users, the invitations, or the user in the URL. */
export const AdminView = () => {
  if (id !== null) return <ManagedUser id={id} />;
  return tabOf(location.search) === 'invitations' ? <InvitationsTab /> : <Users />;
};
