import { defineEntity, p } from '@mikro-orm/core';
import { v4 as randomId } from 'uuid';

const IdentitySchema = defineEntity({
  name: 'Identity',
  tableName: 'identities',
  properties: {
    id: p.string().primary(),
    userId: p.string(),
    issuer: p.string(),
    subject: p.string(),
    createdAt: p.bigint('number'),
  },
});

/**
 * Who somebody is at an identity provider: (issuer, subject), which is unique and never changes, unlike his address there
 * (OpenID Connect Core section 5.7). Several may belong to one user.
 */
export class Identity extends IdentitySchema.class {
  static link(userId: string, { issuer, subject }: { issuer: string; subject: string }): Identity {
    const identity = new Identity();
    identity.id = randomId();
    identity.userId = userId;
    identity.issuer = issuer;
    identity.subject = subject;
    identity.createdAt = Date.now();
    return identity;
  }
}

IdentitySchema.setClass(Identity);
