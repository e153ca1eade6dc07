import { defineEntity, p } from '@mikro-orm/core';
import { v7 as uuidv7 } from 'uuid';
import { searchKey } from './search-key.ts';

export type Role = 'user' | 'admin';

/** The fields of a profile that may be unset. The account, its queries, the profile and its changes derive from this list. */
const optionalProfile = {
  bio: p.string().nullable(),
  location: p.string().nullable(),
  website: p.string().nullable(),
  avatar: p.string().nullable(),
};

export type OptionalProfileField = keyof typeof optionalProfile;
export const optionalProfileFields = Object.keys(optionalProfile) as OptionalProfileField[];

/** The fields that users may change in their own profile; `null` is an unset field. */
export type ProfileFields = { name: string } & Record<OptionalProfileField, string | null>;
export type ProfileChange = { [Field in keyof ProfileFields]?: ProfileFields[Field] | undefined };

/** A profile with only the given fields changed; the empty string clears an optional field, as `null` does. */
export function changedProfile(profile: ProfileFields, change: ProfileChange): ProfileFields {
  const changed = { name: change.name ?? profile.name } as ProfileFields;
  for (const field of optionalProfileFields) {
    const value = change[field];
    changed[field] = value === undefined ? profile[field] : value || null;
  }
  return changed;
}

/** All that is stored of a profile: a name is never stored without its search key. */
export const storedProfile = (profile: ProfileFields) => ({ ...profile, searchName: searchKey(profile.name) });

export const UserSchema = defineEntity({
  name: 'User',
  tableName: 'users',
  properties: {
    id: p.string().primary(),
    email: p.string(),
    name: p.string(),
    /** The search key of the name. */
    searchName: p.string().nullable(),
    ...optionalProfile,
    provider: p.string(),
    role: p.string().$type<Role>(),
    emailVerified: p.boolean(),
    passwordHash: p.string().nullable().hidden(),
    passwordProven: p.boolean(),
    passwordBrowser: p.string().nullable().hidden(),
    sessionEpoch: p.integer(),
    createdAt: p.bigint('number'),
  },
});

/**
 * A user. Each session carries the epoch in which it was opened. Raising `sessionEpoch` in the transaction of a change
 * ends all earlier sessions at that commit, whatever the session store does.
 *
 * The password, like each identity, is *proven* once it is certain that the owner of the inbox chose it; until then
 * `passwordBrowser` is the hash of the browser that asked for it.
 */
export class User extends UserSchema.class {
  /**
   * A user with an address that is not verified yet. `email` must be normalized; its unique key decides which of two
   * registrations is first. `browser` is the hash of the browser that registers.
   */
  static register(values: { email: string; name: string; passwordHash: string | null; browser?: string }): User {
    const user = new User();
    user.id = `user_${uuidv7()}`;
    user.email = values.email;
    user.resetProfile(values.name);
    user.provider = 'email';
    user.role = 'user';
    user.emailVerified = false;
    user.passwordHash = values.passwordHash;
    user.passwordProven = false;
    user.passwordBrowser = values.browser ?? null;
    user.sessionEpoch = 0;
    user.createdAt = Date.now();
    return user;
  }

  /** A user from an identity provider, without a password; verified only if the provider vouches for the address. */
  static admit(values: {
    email: string;
    name: string;
    avatar: string | null;
    provider: string;
    emailVerified: boolean;
  }): User {
    const user = User.register({ email: values.email, name: values.name, passwordHash: null });
    user.avatar = values.avatar;
    user.provider = values.provider;
    user.emailVerified = values.emailVerified;
    return user;
  }

  get profile(): ProfileFields {
    const { name, bio = null, location = null, website = null, avatar = null } = this;
    return { name, bio, location, website, avatar };
  }

  /** Changes only the given fields, as `changedProfile` says. */
  changeProfile(change: ProfileChange): void {
    Object.assign(this, storedProfile(changedProfile(this.profile, change)));
  }

  /** Sets the name and clears every other field. */
  private resetProfile(name: string): void {
    for (const field of optionalProfileFields) this[field] = null;
    this.changeProfile({ name });
  }

  verifyEmail(): void {
    this.emailVerified = true;
  }

  /** Changes the address to one that is not verified yet. */
  changeEmail(email: string): void {
    this.email = email;
    this.emailVerified = false;
  }

  /** Sets a new password, chosen by the owner of the inbox. It ends every session that the old one opened. */
  changePassword(hash: string): void {
    this.passwordHash = hash;
    this.provePassword();
    this.endSessions();
  }

  get hasPassword(): boolean {
    return Boolean(this.passwordHash);
  }

  get hasUnprovenPassword(): boolean {
    return this.hasPassword && !this.passwordProven;
  }

  provePassword(): void {
    this.passwordProven = true;
    this.passwordBrowser = null;
  }

  removePassword(): void {
    this.passwordHash = null;
    this.passwordProven = false;
    this.passwordBrowser = null;
  }

  /** `provider` names a login method of the account. If it is not among `names`, the first of these replaces it. */
  keepProviderAmong(names: string[]): void {
    if (names[0] !== undefined && !names.includes(this.provider)) this.provider = names[0];
  }

  endSessions(): void {
    this.sessionEpoch += 1;
  }

  /**
   * The owner of the inbox takes over an account that was never verified: nothing that the registrant has written
   * survives ("Pre-hijacked accounts", USENIX Security 2022), the name included.
   */
  claim(name: string): void {
    this.resetProfile(name);
    this.verifyEmail();
  }
}

UserSchema.setClass(User);
