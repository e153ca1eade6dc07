import { avatarVariantsIn, type OptionalProfileField, optionalProfileFields } from '../../../entities/index.ts';
import type { Account, ListedUser } from './users.ts';

/** Users as other systems see them: times in Unix seconds, an unset field is the empty string. */

export const toListed = ({ id, name, email, avatar, provider, createdAt }: ListedUser) => ({
  id,
  name,
  email,
  avatar: avatar ?? '',
  provider,
  createdAt: Math.floor(createdAt / 1000),
});

export type PublicUser = ReturnType<typeof toListed> & Record<OptionalProfileField, string>;

export const toPublicUser = (account: Account): PublicUser => {
  // Runs on every profile read: adding to the new object costs less than merging two.
  const user = toListed(account) as PublicUser;
  for (const field of optionalProfileFields) user[field] = account[field] ?? '';
  return user;
};

export const toProfile = (account: Account) => ({ ...toPublicUser(account), emailVerified: account.emailVerified });

/** The profile for the user, with the smaller pictures of an avatar that was uploaded here. */
export const toOwnProfile = (account: Account) => {
  const avatarVariants = avatarVariantsIn(account.avatar, account.avatarVariants);
  return { ...toProfile(account), ...(avatarVariants && { avatarVariants }) };
};
