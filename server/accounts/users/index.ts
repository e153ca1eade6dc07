import type { Activity } from '../../activity/index.ts';
import type { Config } from '../../config/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import { createConsents } from './consents.ts';
import { createRegistrationPolicy } from './registration-policy.ts';
import { createUserSearch } from './search.ts';
import { type AvatarChanged, createUserStore } from './users.ts';

export type { Consents, ListedConsent } from './consents.ts';
export { replaceNameWords, storeNameWords } from './name-words.ts';
export type { RegistrationPolicy } from './registration-policy.ts';
export { createSearch, isSearchable, isSearchCursor } from './search.ts';
export { toListed, toOwnProfile, toProfile, toPublicUser } from './shown.ts';
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
export {
  type Account,
  type AccountRow,
  type AvatarChanged,
  accountColumns,
  accountOf,
  type DeleteUser,
  existing,
  type ListedUser,
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
export const createUsers = ({ registration, termsVersion, publicUsers }: Config, parts: Parts) => ({
  ...createUserStore(parts),
  search: createUserSearch(parts.database),
  /** Which users the public list shows (PUBLIC_USERS). */
  publicUsers,
  registration: createRegistrationPolicy(registration),
  consents: createConsents({ database: parts.database, current: termsVersion }),
});

export type Users = ReturnType<typeof createUsers>;
