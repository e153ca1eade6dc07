import type { UsersFindOutput } from 'account-client';
import { text } from '../../language/texts.ts';

type Managed = Pick<UsersFindOutput['data'][number], 'role' | 'emailVerified' | 'blockedAt' | 'deletedAt'>;

/** What distinguishes a user from a regular one who can log in. */
export const standingOf = ({ role, emailVerified, blockedAt, deletedAt }: Managed): string[] => [
  ...(role === 'admin' ? [text('admin.standing.administrator')] : []),
  ...(emailVerified ? [] : [text('admin.standing.emailNotVerified')]),
  ...(blockedAt === null ? [] : [text('admin.standing.blocked')]),
  ...(deletedAt === null ? [] : [text('admin.standing.beingDeleted')]),
];
