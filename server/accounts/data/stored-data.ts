import type { Tables } from '../../parts/database/contract.ts';

/**
 * The form of a column in the export: `time` in Unix seconds, `details` as the object stored as JSON, `fields` the same
 * for the operator's own fields (absent without any), `variants` as the list of smaller pictures, `ownText` empty if
 * another person has acted, `mailDetail` null if it is the hash of a secret.
 */
export type ColumnKind =
  | 'text'
  | 'ownText'
  | 'optionalText'
  | 'mailDetail'
  | 'number'
  | 'optionalNumber'
  | 'flag'
  | 'time'
  | 'optionalTime'
  | 'details'
  | 'fields'
  | 'variants';

interface StoredTable {
  table: keyof Tables;
  /** The properties with the ids of the user and of the row. Rows are read in the order of `key`. */
  user: string;
  key: string;
  exported: Readonly<Record<string, ColumnKind>>;
  /** Columns not exported, with the reason. */
  leftOut: Readonly<Record<string, string>>;
}

const OWN = 'identifies the user whose data is exported';

/**
 * All data stored about users, by its name in the export and then by field: exported, or left out for a reason.
 * `test/unit/data/stored-data.test.ts` compares it with the entities: a new column is a line here.
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
      fields: 'fields',
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
      avatarVariants: 'is a copy of the variants of an upload',
      passwordHash: 'is a secret',
      passwordBrowser: 'is a secret: the hash of a cookie',
      sessionEpoch: 'a counter of ended sessions, which the activity contains',
      deviceEpoch: 'invalidates device cookies; no data about the user',
      deviceMarks: 'invalidates the oldest device cookies; no data about the user',
      deletedAt: 'is unset for every user who can log in',
      blockedAt: 'is unset for every user who can log in',
      limitEpoch: 'resets counters of wrong credentials; no data about the user',
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
      publicKey: 'no data about the user: the authenticator has the private key',
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
    leftOut: {
      userId: OWN,
      browser: 'is a secret: the hash of a cookie',
      confirmHash: 'is a secret',
      undoHash: 'is a secret',
    },
  },
  invitations: {
    table: 'invitations',
    user: 'invitedBy',
    key: 'id',
    exported: { id: 'text', email: 'text', createdAt: 'time', expiresAt: 'time' },
    leftOut: { invitedBy: OWN, tokenHash: 'is a secret', returnTo: 'is about the invited user' },
  },
  consents: {
    table: 'consents',
    user: 'userId',
    key: 'id',
    exported: { id: 'text', version: 'text', createdAt: 'time' },
    leftOut: { userId: OWN },
  },
  accessKeys: {
    table: 'access_keys',
    user: 'userId',
    key: 'id',
    exported: {
      id: 'text',
      name: 'text',
      scopes: 'text',
      createdAt: 'time',
      expiresAt: 'optionalTime',
      lastUsedAt: 'optionalTime',
    },
    leftOut: {
      userId: OWN,
      epoch: 'whether all sessions were ended, which the activity contains',
      secretHash: 'is a secret',
    },
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
      epoch: 'whether all sessions were ended, which the activity contains',
      tokenHash: 'is a secret',
    },
  },
  grants: {
    table: 'grants',
    user: 'userId',
    key: 'id',
    exported: {
      id: 'text',
      applicationId: 'text',
      scopes: 'text',
      resources: 'text',
      createdAt: 'time',
      lastUsedAt: 'time',
      expiresAt: 'time',
    },
    leftOut: {
      userId: OWN,
      sessionId: 'may be of a session that has ended, or none; the sessions table has the others',
      logoutToldAt: 'is when the application knew of the end, which the activity contains',
      epoch: 'whether all sessions were ended, which the activity contains',
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
      address: 'ownText',
      device: 'ownText',
      requestId: 'text',
      details: 'details',
      createdAt: 'time',
    },
    leftOut: {
      userId: OWN,
      actorId: 'is about another user: an administrator',
      topic: 'is derived from the kind',
      number: 'is the order of the events of all users',
    },
  },
  mails: {
    table: 'outbox',
    user: 'userId',
    key: 'id',
    exported: {
      id: 'text',
      kind: 'text',
      email: 'text',
      detail: 'mailDetail',
      language: 'optionalText',
      state: 'text',
      createdAt: 'time',
    },
    leftOut: {
      userId: OWN,
      inbox: 'is derived from the address',
      tokenId: 'refers to a secret',
      admittedAt: 'is derived from the time',
      turn: 'is used until the mail is sent',
      attempts: 'is used until the mail is sent',
      dueAt: 'is used until the mail is sent',
      expiresAt: 'is used until the mail is sent',
      traceparent: 'is a trace id; traces are not stored here',
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
      width: 'optionalNumber',
      height: 'optionalNumber',
      placeholder: 'optionalText',
      variants: 'variants',
      scan: 'optionalText',
      finding: 'optionalText',
    },
    leftOut: {
      userId: OWN,
      variantsSize: 'is the sum of the variants',
      variantsFor: 'is a setting of the service',
      variantsUntil: 'is the lease of a job',
      expiresAt: 'is used until the file is uploaded',
      dueAt: 'is the time of the next check by a job',
      confirmedVersion: 'is the version of the content in the storage, by which a job detects a replacement',
      multipartId: 'is the name of an unfinished upload in the storage',
    },
  },
} as const satisfies Record<string, StoredTable>;

/** Tables not exported, with the reason. */
export const tablesLeftOut: Partial<Record<keyof Tables, string>> = {
  one_time_tokens: 'secrets; the mails table shows their mails',
  upload_usage: 'sums of the uploads',
  name_words: 'derived from the names of users',
  unique_values: 'derived from the fields of the profile',
  mail_targets: 'addresses of our own pages and front ends; they are deleted with their mail',
  upload_variants: 'keys of objects, which the variants of the uploads give',
  removals: 'users who can no longer log in',
  shared_locks: 'no data about users',
  event_sequence: 'a counter of the events of all users',
  webhooks: 'nothing about users but the id of an administrator, until that role ends',
  applications: 'nothing about users but the id of an administrator, until that role ends',
  oauth_artifacts: 'secrets of applications; the grants table shows what they allow',
  signing_keys: 'no data about users',
  webhook_deliveries: 'copies of the activity for other systems',
};
