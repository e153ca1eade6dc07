import { defineEntity, p } from '@mikro-orm/core';
import { v7 as uuidv7 } from 'uuid';
import { searchKey } from './search-key.ts';

export const roles = ['user', 'admin'] as const;
export type Role = (typeof roles)[number];

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
    deviceEpoch: p.integer().nullable(),
    createdAt: p.bigint('number'),
    deletedAt: p.bigint('number').nullable(),
    blockedAt: p.bigint('number').nullable(),
    limitEpoch: p.integer().nullable(),
    language: p.string().nullable(),
    browserLanguage: p.string().nullable(),
  },
});

/**
 * A user. Each session carries the epoch in which it was opened. Raising `sessionEpoch` in the transaction of a change
 * ends all earlier sessions at that commit, whatever the session store does.
 *
 * The mark of a user in the cookie of a device is of one `deviceEpoch`: raising it makes every device unknown. It is null
 * until the first login.
 *
 * The password, like each identity, is *proven* once it is certain that the owner of the inbox chose it; until then
 * `passwordBrowser` is the hash of the browser that asked for it.
 *
 * `deletedAt` is when the user asked to delete the account, which is hidden and takes no login since, and which can be restored
 * until its removal begins. `blockedAt` is when an administrator shut the user out.
 *
 * Wrong credentials are counted under `limitEpoch`: raising it ends all these counts. It is null until an administrator first
 * does so.
 *
 * `language` is what the user has chosen, `browserLanguage` that of the browser of the last login or of the registration.
 */
export class User extends UserSchema.class {
  /**
   * A user with an address that is not verified yet. `email` must be normalized; its unique key decides which of two
   * registrations is first. `browser` is the hash of the browser that registers.
   */
  static register(values: {
    email: string;
    name: string;
    passwordHash: string | null;
    browser?: string;
    browserLanguage?: string | undefined;
  }): User {
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
    user.deviceEpoch = null;
    user.createdAt = Date.now();
    user.deletedAt = null;
    user.blockedAt = null;
    user.limitEpoch = null;
    user.language = null;
    user.browserLanguage = values.browserLanguage ?? null;
    return user;
  }

  /** A user from an identity provider, without a password; verified only if the provider vouches for the address. */
  static admit(values: {
    email: string;
    name: string;
    avatar: string | null;
    provider: string;
    emailVerified: boolean;
    browserLanguage: string | undefined;
  }): User {
    const { email, name, browserLanguage } = values;
    const user = User.register({ email, name, passwordHash: null, browserLanguage });
    user.avatar = values.avatar;
    user.provider = values.provider;
    user.emailVerified = values.emailVerified;
    return user;
  }

  /**
   * A user who comes from elsewhere, where the account was made at `createdAt`: the id is of that time, and of those of one time the
   * one with the higher `turn` is the newer. The password is proven only where the address is verified.
   */
  static import({
    email,
    profile,
    provider,
    ...values
  }: {
    email: string;
    profile: ProfileChange & { name: string };
    provider: string;
    emailVerified: boolean;
    passwordHash: string | null;
    passwordProven: boolean;
    isBlocked: boolean;
    language: string | null;
    createdAt: number;
    turn: number;
  }): User {
    const user = User.register({ email, name: profile.name, passwordHash: values.passwordHash });
    user.id = `user_${uuidv7({ msecs: values.createdAt, seq: values.turn })}`;
    user.createdAt = values.createdAt;
    user.changeProfile(profile);
    user.provider = provider;
    user.emailVerified = values.emailVerified;
    if (user.hasPassword && values.emailVerified && values.passwordProven) user.provePassword();
    if (values.isBlocked) user.blockedAt = Date.now();
    user.language = values.language;
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

  /** Sets a new password, and ends every session that the old one opened. It is proven if the old one was. */
  changePassword(hash: string): void {
    this.passwordHash = hash;
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

  /** Makes every device unknown. Before the first login there is none. */
  forgetDevices(): void {
    if (typeof this.deviceEpoch === 'number') this.deviceEpoch += 1;
  }

  get isDeleted(): boolean {
    return this.deletedAt != null;
  }

  /** Asks for the removal of the account, and ends every session. */
  delete(now: number): void {
    this.deletedAt = now;
    this.endSessions();
  }

  restore(): void {
    this.deletedAt = null;
  }

  get isBlocked(): boolean {
    return this.blockedAt != null;
  }

  /** Refuses every login from now on. The caller ends the sessions. */
  block(now: number): void {
    this.blockedAt = now;
  }

  unblock(): void {
    this.blockedAt = null;
  }

  /** Whether the user can act as an administrator after a login. */
  get isActiveAdministrator(): boolean {
    return this.role === 'admin' && this.emailVerified && !this.isBlocked && !this.isDeleted;
  }

  /** Ends every count of wrong credentials. */
  forgetAttempts(): void {
    this.limitEpoch = (this.limitEpoch ?? 0) + 1;
  }

  /** Another person may have chosen the languages, or logged in with a browser of theirs. */
  forgetLanguages(browserLanguage: string | undefined = undefined): void {
    this.language = null;
    this.browserLanguage = browserLanguage ?? null;
  }

  /**
   * The owner of the inbox takes over an account that was never verified: nothing that the registrant has written
   * survives ("Pre-hijacked accounts", USENIX Security 2022), the name included.
   */
  claim(name: string): void {
    this.resetProfile(name);
    this.forgetLanguages();
    this.verifyEmail();
  }
}

UserSchema.setClass(User);
