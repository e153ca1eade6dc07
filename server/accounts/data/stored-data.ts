import type { Tables } from '../parts/database/contract.ts';

/** How a column is shown in the export: a `time` in Unix seconds, `details` as the object that is stored as JSON. */
export type ColumnKind = 'text' | 'optionalText' | 'number' | 'flag' | 'time' | 'optionalTime' | 'details';

interface StoredTable {
  table: keyof Tables;
  /** The fields that name the user and the row, in whose order the rows are read. */
  user: string;
  key: string;
  exported: Readonly<Record<string, ColumnKind>>;
  /** With the reason. */
  leftOut: Readonly<Record<string, string>>;
}

const OWN = 'says whose row it is';

/**
 * All that is stored about users, by its name in the export and then field by field: each is exported, or left out for a
 * reason. `test/unit/stored-data.test.ts` holds this list to the entities: a new column is a line here.
 */
export const storedData = {
  profile: {
    table: 'users',
    user: 'id',
    key: 'id',
    exported: {
      id: 'text',
      email: 'text',
      name: 'text',
      bio: 'optionalText',
      location: 'optionalText',
      website: 'optionalText',
      avatar: 'optionalText',
      language: 'optionalText',
      browserLanguage: 'optionalText',
      provider: 'text',
      role: 'text',
      emailVerified: 'flag',
      passwordProven: 'flag',
      createdAt: 'time',
    },
    leftOut: {
      searchName: 'is derived from the name',
      passwordHash: 'is a secret',
      passwordBrowser: 'is a secret: the hash of a cookie',
      sessionEpoch: 'counts how often all sessions ended, which the activity tells',
      deviceEpoch: 'makes the marks in the cookies of devices void, and says nothing about the user',
      deletedAt: 'is unset for every user who can log in',
      blockedAt: 'is unset for every user who can log in',
      limitEpoch: 'makes counts of wrong credentials void, and says nothing about the user',
    },
  },
  identities: {
    table: 'identities',
    user: 'userId',
    key: 'id',
    exported: {
      id: 'text',
      issuer: 'text',
      subject: 'text',
      provider: 'text',
      email: 'optionalText',
      proven: 'flag',
      createdAt: 'time',
    },
    leftOut: { userId: OWN, browser: 'is a secret: the hash of a cookie' },
  },
  passkeys: {
    table: 'passkeys',
    user: 'userId',
    key: 'id',
    exported: {
      id: 'text',
      credentialId: 'text',
      name: 'text',
      aaguid: 'text',
      transports: 'text',
      backupEligible: 'flag',
      backedUp: 'flag',
      proven: 'flag',
      createdAt: 'time',
      lastUsedAt: 'optionalTime',
    },
    leftOut: {
      userId: OWN,
      publicKey: 'says nothing about the user, whose authenticator has the other half',
      signCount: 'is the state of a check',
    },
  },
  authenticatorApp: {
    table: 'totps',
    user: 'userId',
    key: 'userId',
    exported: { createdAt: 'time' },
    leftOut: { userId: OWN, secret: 'is a secret', lastStep: 'is the state of a check' },
  },
  recoveryCodes: {
    table: 'recovery_codes',
    user: 'userId',
    key: 'id',
    exported: { id: 'text', createdAt: 'time', usedAt: 'optionalTime' },
    leftOut: { userId: OWN, codeHash: 'is a secret' },
  },
  emailChanges: {
    table: 'email_changes',
    user: 'userId',
    key: 'id',
    exported: {
      id: 'text',
      email: 'text',
      former: 'optionalText',
      createdAt: 'time',
      confirmedAt: 'optionalTime',
      expiresAt: 'time',
    },
    leftOut: { userId: OWN, confirmHash: 'is a secret', undoHash: 'is a secret' },
  },
  invitations: {
    table: 'invitations',
    user: 'invitedBy',
    key: 'id',
    exported: { id: 'text', email: 'text', createdAt: 'time', expiresAt: 'time' },
    leftOut: { invitedBy: OWN, tokenHash: 'is a secret' },
  },
  consents: {
    table: 'consents',
    user: 'userId',
    key: 'id',
    exported: { id: 'text', version: 'text', createdAt: 'time' },
    leftOut: { userId: OWN },
  },
  sessions: {
    table: 'sessions',
    user: 'userId',
    key: 'id',
    exported: {
      id: 'text',
      method: 'text',
      address: 'text',
      device: 'text',
      createdAt: 'time',
      authenticatedAt: 'time',
      lastUsedAt: 'time',
      expiresAt: 'time',
    },
    leftOut: {
      userId: OWN,
      epoch: 'says whether the session ended with all others, which the activity tells',
      tokenHash: 'is a secret',
    },
  },
  activity: {
    table: 'activity',
    user: 'userId',
    key: 'id',
    exported: {
      id: 'text',
      kind: 'text',
      actor: 'text',
      address: 'text',
      device: 'text',
      requestId: 'text',
      details: 'details',
      createdAt: 'time',
    },
    leftOut: { userId: OWN, actorId: 'is about another user: an administrator' },
  },
  mails: {
    table: 'outbox',
    user: 'userId',
    key: 'id',
    exported: {
      id: 'text',
      kind: 'text',
      email: 'text',
      detail: 'optionalText',
      language: 'optionalText',
      state: 'text',
      createdAt: 'time',
    },
    leftOut: {
      userId: OWN,
      inbox: 'is derived from the address',
      tokenId: 'leads to a secret',
      attempts: 'is of use while the mail is on its way',
      dueAt: 'is of use while the mail is on its way',
      expiresAt: 'is of use while the mail is on its way',
      traceparent: 'is the name of a trace, kept elsewhere or not at all',
    },
  },
  uploads: {
    table: 'uploads',
    user: 'userId',
    key: 'objectKey',
    exported: {
      objectKey: 'text',
      purpose: 'text',
      contentType: 'text',
      size: 'number',
      state: 'text',
      createdAt: 'time',
    },
    leftOut: {
      userId: OWN,
      expiresAt: 'is of use while the file is awaited',
      dueAt: 'is when the job looks at the file',
    },
  },
} as const satisfies Record<string, StoredTable>;

/** The tables of which nothing is exported, with the reason. */
export const tablesLeftOut: Partial<Record<keyof Tables, string>> = {
  one_time_tokens: 'secrets, of which the mails tell',
  upload_usage: 'sums of the uploads',
  removals: 'users who can no longer log in',
  shared_locks: 'says nothing about users',
};
