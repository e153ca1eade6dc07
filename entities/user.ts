/*
 * Each session stores the epoch in which it was opened. A change that raises `sessionEpoch` ends all earlier sessions at its
 * commit, whatever the session store does.
 *
 * The mark of a user in the cookie of a device belongs to one `deviceEpoch`: raising it makes every device unknown. `deviceMarks`
 * counts the marks made in this epoch. In both, null counts as 0.
 *
 * The password, like each identity, is *proven* once it is certain that the owner of the inbox chose it; until then
 * `passwordBrowser` is the hash of the browser that set it.
 *
 * `deletedAt` is when the user asked to delete the account. Since then it is hidden and refuses logins, and it can be restored until
 * its removal begins. `blockedAt` is when an administrator blocked the user.
 *
 * Wrong credentials are counted under `limitEpoch`: raising it resets all counts. Null until an administrator first does so.
 *
 * `avatarVariants` has the variants of an avatar that was uploaded here, so that a read of the profile needs no further query.
 *
 * `fields` is the JSON object of the operator's own fields, without unset ones. It also has fields that are no longer configured.
 *
 * `language` is the user's choice, `browserLanguage` that of the browser of the registration or the last login.
 */

import { defineEntity, p } from '@mikro-orm/core';
import { v7 as uuidv7 } from 'uuid';
import { searchKey } from './search-key.ts';

export const roles = ['user', 'admin'] as const;
export type Role = (typeof roles)[number];

/**
 * The profile fields that may be unset. The account, its queries, the profile and its changes derive from this list.
 */
const optionalProfile = {
  bio: p.string().nullable(),
  location: p.string().nullable(),
  website: p.string().nullable(),
  avatar: p.string().nullable(),
};

export type OptionalProfileField = keyof typeof optionalProfile;
export const optionalProfileFields = Object.keys(optionalProfile) as OptionalProfileField[];

/** The profile fields that users may change; `null` is an unset field. */
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

/** The stored fields of a profile: a name is never stored without its search key. */
const storedProfile = (profile: ProfileFields) => ({ ...profile, searchName: searchKey(profile.name) });

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
    avatarVariants: p.string().nullable(),
    fields: p.string().nullable(),
    provider: p.string(),
    role: p.string().$type<Role>(),
    emailVerified: p.boolean(),
    passwordHash: p.string().nullable().hidden(),
    passwordProven: p.boolean(),
    passwordBrowser: p.string().nullable().hidden(),
    sessionEpoch: p.integer(),
    deviceEpoch: p.integer().nullable(),
    deviceMarks: p.integer().nullable(),
    createdAt: p.bigint('number'),
    deletedAt: p.bigint('number').nullable(),
    blockedAt: p.bigint('number').nullable(),
    limitEpoch: p.integer().nullable(),
    language: p.string().nullable(),
    browserLanguage: p.string().nullable(),
  },
});

/** A user. The head of this file describes the fields. */
export class User extends UserSchema.class {
  /**
   * A user with an unverified address. `email` must be normalized; its unique key decides between concurrent
   * registrations. `browser` is the hash of the registering browser.
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
    user.deviceMarks = null;
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
   * An imported user, created elsewhere at `createdAt`: the id has that time; at equal times the higher `turn` is
   * newer. The password is proven only if the address is verified.
   */
  static import({
    email,
    profile,
    provider,
    ...values
  }: {
    email: string;
    profile: ProfileChange & { name: string };
    fields: string | null;
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
    user.fields = values.fields;
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

  /** Changes only the given fields, like `changedProfile`. */
  changeProfile(change: ProfileChange): void {
    if (change.avatar !== undefined && (change.avatar || null) !== this.avatar) this.avatarVariants = null;
    Object.assign(this, storedProfile(changedProfile(this.profile, change)));
  }

  /** Sets the name and clears every other field. `claimUser` frees the unique values. */
  private resetProfile(name: string): void {
    for (const field of optionalProfileFields) this[field] = null;
    this.fields = null;
    this.changeProfile({ name });
  }

  verifyEmail(): void {
    this.emailVerified = true;
  }

  /** Changes the address to an unverified one. */
  changeEmail(email: string): void {
    this.email = email;
    this.emailVerified = false;
  }

  /** Sets a new password and ends every session. It is proven if the old one was. */
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

  /** Ends every session and makes every device unknown: another person may have logged in on any of them. */
  endSessions(): void {
    this.sessionEpoch += 1;
    this.deviceEpoch = (this.deviceEpoch ?? 0) + 1;
    this.deviceMarks = null;
  }

  get isDeleted(): boolean {
    return this.deletedAt != null;
  }

  /** Requests the removal of the account and ends every session. */
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

  /** True if the user can act as an administrator after a login. */
  get isActiveAdministrator(): boolean {
    return this.role === 'admin' && this.emailVerified && !this.isBlocked && !this.isDeleted;
  }

  /** Resets all counts of wrong credentials. */
  forgetAttempts(): void {
    this.limitEpoch = (this.limitEpoch ?? 0) + 1;
  }

  /** Another person may have chosen the languages, or logged in with another browser. */
  forgetLanguages(browserLanguage: string | undefined = undefined): void {
    this.language = null;
    this.browserLanguage = browserLanguage ?? null;
  }

  /**
   * Call when the owner of the inbox takes over a never verified account: nothing from the registrant survives, not
   * even the name ("Pre-hijacked accounts", USENIX Security 2022).
   */
  claim(name: string): void {
    this.resetProfile(name);
    this.forgetLanguages();
    this.verifyEmail();
  }
}

UserSchema.setClass(User);
