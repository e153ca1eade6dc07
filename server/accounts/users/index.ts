import type { Activity } from '../../activity/index.ts';
import type { Config } from '../../config/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import { createConsents } from './consents.ts';
import { createCustomFields } from './custom-fields.ts';
import { dropField } from './dropped-fields.ts';
import { createRegistrationPolicy } from './registration-policy.ts';
import { createUserSearch } from './search.ts';
import { createViews } from './shown.ts';
import { type AvatarChanged, createUserStore } from './users.ts';

export { claimUser } from './claim.ts';
export type { Consents, ListedConsent } from './consents.ts';
export { type CustomFields, createCustomFields, storedFields, toStoredFields } from './custom-fields.ts';
export { storeNameWords } from './name-words.ts';
export type { RegistrationPolicy } from './registration-policy.ts';
export { createSearch, isSearchable, isSearchCursor } from './search.ts';
export { toListed } from './shown.ts';
export {
  hasVisible,
  inboxOf,
  isMailAddress,
  isName,
  isOneLine,
  isStorable,
  isWebAddress,
  lengthOf,
  nameFromAddress,
  normalizeEmail,
} from './text-rules.ts';
export { atMost, rule, shortText, text, webAddress } from './text-schemas.ts';
export {
  type Account,
  type AccountRow,
  type AvatarChanged,
  accountColumns,
  accountOf,
  type DeleteUser,
  existing,
  type LockedId,
  type LockedUser,
  type LoginAccount,
  listedFields,
  lockUser,
  toAccount,
  type UserPage,
} from './users.ts';

interface Parts {
  database: Database;
  activity: Activity;
  avatarChanged: AvatarChanged;
}

/** Users and their profiles, who may register, and which terms they have accepted. */
export const createUsers = (
  { registration, termsVersion, publicUsers, profileFields }: Config,
  { database, ...parts }: Parts,
) => {
  const customFields = createCustomFields(profileFields);
  return {
    ...createUserStore({ database, ...parts, customFields }),
    search: createUserSearch(database, customFields),
    /** Which users the public list shows (PUBLIC_USERS). */
    publicUsers,
    registration: createRegistrationPolicy(registration),
    consents: createConsents({ database, current: termsVersion }),
    customFields,
    /** Removes the values of a field that is no longer configured. Resolves to their number. */
    dropField: (name: string) => dropField(database, name),
    views: createViews(customFields),
  };
};

export type Users = ReturnType<typeof createUsers>;
