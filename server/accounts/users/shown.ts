import { avatarVariantsIn, type OptionalProfileField, optionalProfileFields } from '../../../entities/index.ts';
import type { FieldReader, FieldValues } from '../../shared/profile-fields.ts';
import type { CustomFields } from './custom-fields.ts';
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

type PublicUser = ReturnType<typeof toListed> & Record<OptionalProfileField, string>;

const toPublicUser = (account: Account): PublicUser => {
  // Runs on every profile read: adding to the new object costs less than merging two.
  const user = toListed(account) as PublicUser;
  for (const field of optionalProfileFields) user[field] = account[field] ?? '';
  return user;
};

const toProfile = (account: Account) => ({ ...toPublicUser(account), emailVerified: account.emailVerified });

/** With the smaller pictures of an avatar that was uploaded here. */
const toOwnProfile = (account: Account) => {
  const avatarVariants = avatarVariantsIn(account.avatar, account.avatarVariants);
  return { ...toProfile(account), ...(avatarVariants && { avatarVariants }) };
};

interface WithFields {
  fields?: FieldValues;
}

/** The views of a user, each with the operator's own fields that its readers see. */
export const createViews = ({ valuesFor }: Pick<CustomFields, 'valuesFor'>) => {
  const withFields = <Row extends { fields?: string | null | undefined }, View extends object>(
    reader: FieldReader,
    show: (row: Row) => View,
  ): ((row: Row) => View & WithFields) => {
    const values = valuesFor(reader);
    if (!values) return show;
    return (row) => {
      const view: View & WithFields = show(row);
      view.fields = values(row.fields);
      return view;
    };
  };
  return {
    toListed: withFields('public', toListed),
    toPublicUser: withFields('public', toPublicUser),
    /** For other services. */
    toProfile: withFields('services', toProfile),
    /** For the user. */
    toOwnProfile: withFields('owner', toOwnProfile),
    /** For administrators. */
    toManagedUser: withFields('administrators', toPublicUser),
  };
};
