import type { UsersFindOutput } from 'account-client';
import { text } from '../../language/texts.ts';
import './admin.css';

type Managed = Pick<UsersFindOutput['data'][number], 'role' | 'emailVerified' | 'blockedAt' | 'deletedAt'>;

/** What distinguishes a user from a regular one who can log in. */
const standingsOf = ({ role, emailVerified, blockedAt, deletedAt }: Managed) =>
  [
    role === 'admin' && ({ name: 'administrator', look: 'accent' } as const),
    !emailVerified && ({ name: 'unverified', look: 'warning' } as const),
    blockedAt !== null && ({ name: 'blocked', look: 'failure' } as const),
    deletedAt !== null && ({ name: 'deleted', look: 'failure' } as const),
  ].filter((standing) => standing !== false);

export const Standing = ({ user }: { user: Managed }) => (
  <>
    {standingsOf(user).map(({ name, look }) => (
      <span key={name} class={`badge ${look}`}>
        {text(`admin.standing.${name}`)}
      </span>
    ))}
  </>
);
