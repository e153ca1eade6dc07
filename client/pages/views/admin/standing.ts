import type { UsersFindOutput } from 'account-client';
import { text } from '../../texts.ts';

type Managed = Pick<UsersFindOutput['data'][number], 'role' | 'emailVerified' | 'blockedAt' | 'deletedAt'>;

/** What sets a user apart from an ordinary one who can log in. */
export const standingOf = ({ role, emailVerified, blockedAt, deletedAt }: Managed): string[] => [
  ...(role === 'admin' ? [text('admin.standing.administrator')] : []),
  ...(emailVerified ? [] : [text('admin.standing.emailNotVerified')]),
  ...(blockedAt === null ? [] : [text('admin.standing.blocked')]),
  ...(deletedAt === null ? [] : [text('admin.standing.beingDeleted')]),
];
