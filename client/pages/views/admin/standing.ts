import type { UsersFindOutput } from 'account-client';

type Managed = Pick<UsersFindOutput['data'][number], 'role' | 'emailVerified' | 'blockedAt' | 'deletedAt'>;

/** What sets a user apart from an ordinary one who can log in. */
export const standingOf = ({ role, emailVerified, blockedAt, deletedAt }: Managed): string[] => [
  ...(role === 'admin' ? ['administrator'] : []),
  ...(emailVerified ? [] : ['email not verified']),
  ...(blockedAt === null ? [] : ['blocked']),
  ...(deletedAt === null ? [] : ['being deleted']),
];
