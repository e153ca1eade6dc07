import { ManagedUser } from './managed-user.tsx';
import { Users } from './users.tsx';

const id = new URLSearchParams(location.search).get('user');

/** All users, or the one in the URL. */
export const AdminView = () => (id === null ? <Users /> : <ManagedUser id={id} />);
