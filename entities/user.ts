import { defineEntity, p } from '@mikro-orm/core';
import { v7 as uuidv7 } from 'uuid';
import { searchKey } from './search-key.ts';

export type Role = 'user' | 'admin';

/** The fields that users may change in their own profile; `null` clears an optional field. */
export interface ProfileChange {
  name?: string | undefined;
  bio?: string | null | undefined;
  location?: string | null | undefined;
  website?: string | null | undefined;
  avatar?: string | null | undefined;
}

export const UserSchema = defineEntity({
  name: 'User',
  tableName: 'users',
  properties: {
    id: p.string().primary(),
    email: p.string(),
    name: p.string(),
    /** The search key of the name. */
    searchName: p.string().nullable(),
    bio: p.string().nullable(),
    location: p.string().nullable(),
    website: p.string().nullable(),
    avatar: p.string().nullable(),
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
 * A person with an account. The session epoch is the rule that ends sessions: each session carries the epoch it was
 * made in, and raising it in the transaction of a change ends every earlier one at that commit, whatever the session
 * store does.
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
    user.rename(values.name);
    user.bio = user.location = user.website = user.avatar = null;
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

  /** The only way to change the name: its search key changes with it. */
  private rename(name: string): void {
    this.name = name;
    this.searchName = searchKey(name);
  }

  /** Changes only the given fields; the empty string clears an optional field, as `null` does. */
  changeProfile({ name, bio, location, website, avatar }: ProfileChange): void {
    if (name !== undefined) this.rename(name);
    if (bio !== undefined) this.bio = bio || null;
    if (location !== undefined) this.location = location || null;
    if (website !== undefined) this.website = website || null;
    if (avatar !== undefined) this.avatar = avatar || null;
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

  /** `provider` names a login method that the account has: once that is removed, one of those that are left. */
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
    this.changeProfile({ name, bio: null, location: null, website: null, avatar: null });
    this.verifyEmail();
  }
}

UserSchema.setClass(User);
