/*
 * (issuer, subject) is unique and never changes, unlike the address there (OpenID Connect Core section 5.7). `email` is
 * the last address from the provider, normalized; null if unknown or unusable. An identity is *proven* once it is
 * certain that the owner of the account's inbox added it; until then `browser` is the hash of the browser that last
 * used it.
 */

import { randomUUID } from 'node:crypto';
import { defineEntity, p } from '@mikro-orm/core';
import type { ProviderName } from '../../server/shared/method-names.ts';

export const IdentitySchema = defineEntity({
  name: 'Identity',
  tableName: 'identities',
  properties: {
    id: p.string().primary(),
    userId: p.string(),
    issuer: p.string(),
    subject: p.string(),
    provider: p.string().$type<ProviderName>(),
    email: p.string().nullable(),
    proven: p.boolean(),
    browser: p.string().nullable().hidden(),
    createdAt: p.bigint('number'),
  },
});

/** A user's identity at an identity provider. A user may have several. */
export class Identity extends IdentitySchema.class {
  /** `provider` is the configured name, such as `github`. */
  static link(
    userId: string,
    {
      issuer,
      subject,
      provider,
      email,
    }: { issuer: string; subject: string; provider: ProviderName; email?: string | undefined },
  ): Identity {
    const identity = new Identity();
    identity.id = randomUUID();
    identity.userId = userId;
    identity.issuer = issuer;
    identity.subject = subject;
    identity.provider = provider;
    identity.email = email ?? null;
    identity.proven = false;
    identity.browser = null;
    identity.createdAt = Date.now();
    return identity;
  }

  /** Stores an address from the provider; undefined keeps the last one. */
  stateEmail(email: string | undefined): void {
    if (email !== undefined) this.email = email;
  }

  prove(): void {
    this.proven = true;
    this.browser = null;
  }
}

IdentitySchema.setClass(Identity);
