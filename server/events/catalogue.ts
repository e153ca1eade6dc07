/**
 * The public events: everything that other systems learn about accounts. Types, JSON Schema, `/openapi.json`,
 * docs/events.md and the client's types come from this table. An activity kind belongs to at most one type; a kind that
 * no type names is internal. `data` has ids, names of fields and methods: never a token, a hash, a device, a network
 * address or an email address.
 */
import { z } from 'zod';
import { optionalProfileFields } from '../../entities/index.ts';
import { type DetailsOf, type EventKind, eventKinds } from '../activity/kinds.ts';
import { type EventType, eventTypes } from '../shared/event-types.ts';

interface Definition<Shape extends z.ZodRawShape> {
  /** For the documents. */
  sentence: string;
  data: Shape;
  example: z.output<z.ZodObject<Shape>>;
  /** The kinds that it is made of, and what `data` has of their details. */
  kinds: { [Kind in EventKind]?: (details: DetailsOf<Kind>) => Partial<z.output<z.ZodObject<Shape>>> };
}

/** Infers the fields of `data`. */
const define = <Shape extends z.ZodRawShape>({ data, ...definition }: Definition<Shape>) => ({
  ...definition,
  data: z.object(data),
});

const USER = 'user_0193b6e0-7a54-7c3c-9d0a-3f4f5f6a7b8c';

const KEY = '02KqT8YzJv0aP3mWfR7xLd';

const userId = z.string().meta({ description: 'The id of the user' });
/** The fields of every event with a known actor. */
const who = {
  userId,
  actor: z.string().meta({
    description: 'Who did it: `user`, `administrator`, `operator` at the command line, or `service:` and its name',
  }),
};
const byUser = { userId: USER, actor: 'user' };

const method = z
  .string()
  .meta({ description: '`password`, `passkey`, `email-code`, or the name of the identity provider' });
const provider = z.string().meta({ description: 'The name of the identity provider' });
const changedFields = ['name', ...optionalProfileFields, 'language', 'loginMethods'];
const fields = z.array(z.string()).meta({
  description: `Names of fields: ${changedFields.map((name) => `\`${name}\``).join(', ')}; \`fields.\` and the name of a field of \`PROFILE_FIELDS\``,
});
const removedMethods = z.array(z.string()).optional().meta({
  description: 'Login methods that were removed with it: `password`, `passkey`, `totp`, `recovery`, names of providers',
});
const sessionId = z.string().optional().meta({
  description:
    'The id of the session, as in `sessions.list`. A new password, and other changes of credentials, give it another one',
});
const passkeyId = z.string().optional().meta({ description: 'The id of the passkey, as in `passkeys.list`' });
const secondFactor = z.enum(['totp']).meta({ description: 'The second factor' });
const keyId = z.string().meta({ description: 'The id of the key, which is part of the key' });
const applicationId = z.string().meta({ description: 'The id of the application' });
const loginId = z.string().optional().meta({
  description: 'The login that has ended: `sid` in its ID tokens. Absent if all logins at the application have ended',
});
const objectKey = z.string().meta({ description: 'The key of the upload' });

const SESSION = '0193b6e2-4d10-7a52-9f3b-6c1d2e3f4a50';
const PASSKEY = '0193b6e3-1b7c-7e64-8d2a-7f8e9dacbb61';

const nothing = () => ({});
/** Events of before have no id. */
const inSession = ({ session }: { session?: string | undefined }) =>
  session === undefined ? {} : { sessionId: session };
const ofPasskey = ({ id }: { id?: string }) => (id === undefined ? {} : { passkeyId: id });
const totp = () => ({ secondFactor: 'totp' as const });
/** Methods have commas between them, fields a comma and a space. */
const listOf = (text: string): string[] => text.split(/, ?/);
const removedIn = ({ methods }: { methods?: string }) =>
  methods === undefined ? {} : { removedMethods: listOf(methods) };

/** By type. */
export const publicEvents = {
  'user.created': define({
    sentence: 'An account was created.',
    data: {
      ...who,
      method: z
        .string()
        .meta({ description: '`password`, `email-code`, `import`, or the name of the identity provider' }),
      invitedBy: z.string().optional().meta({ description: '`administrator` or `operator`, for an invited user' }),
    },
    example: { ...byUser, method: 'password' },
    kinds: {
      registered: ({ method, invitedBy }) => ({ method, ...(invitedBy !== undefined && { invitedBy }) }),
    },
  }),
  'user.verified': define({
    sentence: 'The user confirmed the email address.',
    data: who,
    example: byUser,
    kinds: { verified: nothing },
  }),
  'user.updated': define({
    sentence:
      'Fields of the profile changed. `loginMethods`: login methods that nobody had confirmed were removed from the account.',
    data: { ...who, fields, removedMethods },
    example: { ...byUser, fields: ['name', 'location'] },
    kinds: {
      'profile-changed': ({ fields: changed }) => ({ fields: listOf(changed) }),
      'login-methods-removed': (details) => ({ fields: ['loginMethods'], ...removedIn(details) }),
    },
  }),
  'user.email_changed': define({
    sentence:
      'The email address changed, or a change was undone. The event has no address: `service.users` returns the current one.',
    data: { ...who, removedMethods },
    example: byUser,
    kinds: { 'email-changed': nothing, 'email-change-undone': removedIn },
  }),
  'user.deletion_requested': define({
    sentence:
      'The account is being deleted: every session ended, and nobody can log in. It can be restored until it is removed.',
    data: {
      ...who,
      removedAfter: z.iso.datetime().meta({ description: 'The account is removed some time after this' }),
    },
    example: { ...byUser, removedAfter: '2026-12-07T09:30:00.000Z' },
    kinds: { 'deletion-requested': ({ removedAfter }) => ({ removedAfter }) },
  }),
  'user.restored': define({
    sentence: 'The deletion was undone: the account stays.',
    data: who,
    example: byUser,
    kinds: { 'deletion-undone': nothing },
  }),
  'user.removed': define({
    sentence: "All data of the user was deleted, including the user's other events. This is the user's last event.",
    data: { userId },
    example: { userId: USER },
    kinds: { 'user-removed': nothing },
  }),
  'user.blocked': define({
    sentence: 'An administrator blocked the user: every session ended, and logins are refused.',
    data: who,
    example: { userId: USER, actor: 'administrator' },
    kinds: { blocked: nothing },
  }),
  'user.unblocked': define({
    sentence: 'An administrator unblocked the user.',
    data: who,
    example: { userId: USER, actor: 'administrator' },
    kinds: { unblocked: nothing },
  }),
  'user.role_changed': define({
    sentence: 'The role of the user changed. Every session of a new administrator ended.',
    data: { ...who, role: z.enum(['user', 'admin']).meta({ description: 'The new role' }) },
    example: { userId: USER, actor: 'administrator', role: 'admin' },
    kinds: { 'role-changed': ({ to }) => ({ role: to }) },
  }),
  'user.password_changed': define({
    sentence: 'The password was set or changed. All other sessions ended.',
    data: {
      ...who,
      by: z.enum(['user', 'reset']).meta({ description: '`user` in a session, or `reset` by a mailed link' }),
    },
    example: { ...byUser, by: 'reset' },
    kinds: { 'password-changed': ({ by }) => ({ by }) },
  }),
  'session.created': define({
    sentence: 'The user logged in.',
    data: {
      ...who,
      sessionId,
      method,
      secondFactor: z
        .string()
        .optional()
        .meta({ description: 'The second factor that the user gave: `totp`, `recovery` or `passkey`' }),
    },
    example: { ...byUser, sessionId: SESSION, method: 'passkey' },
    kinds: {
      'logged-in': ({ method, secondFactor, session }) => ({
        ...inSession({ session }),
        method,
        ...(secondFactor !== undefined && { secondFactor }),
      }),
    },
  }),
  'session.ended': define({
    sentence: 'One session ended: by its own logout, by a login in its place, or from another session.',
    data: { ...who, sessionId },
    example: { ...byUser, sessionId: SESSION },
    kinds: { 'logged-out': inSession, 'session-ended': inSession },
  }),
  'sessions.ended': define({
    sentence: 'Every session of the user ended.',
    data: { ...who, removedMethods },
    example: byUser,
    kinds: { 'sessions-ended': nothing, 'not-me': removedIn },
  }),
  'identity.linked': define({
    sentence: 'An identity of a provider was linked: the user can log in by it.',
    data: { ...who, provider },
    example: { ...byUser, provider: 'github' },
    kinds: { 'identity-linked': ({ provider }) => ({ provider }) },
  }),
  'identity.unlinked': define({
    sentence: 'An identity of a provider was unlinked.',
    data: { ...who, provider },
    example: { ...byUser, provider: 'github' },
    kinds: { 'identity-unlinked': ({ provider }) => ({ provider }) },
  }),
  'passkey.added': define({
    sentence: 'The user added a passkey.',
    data: { ...who, passkeyId },
    example: { ...byUser, passkeyId: PASSKEY },
    kinds: { 'passkey-added': ofPasskey },
  }),
  'passkey.removed': define({
    sentence: 'The user removed a passkey.',
    data: { ...who, passkeyId },
    example: { ...byUser, passkeyId: PASSKEY },
    kinds: { 'passkey-removed': ofPasskey },
  }),
  'key.created': define({
    sentence: 'The user created an access key.',
    data: { ...who, keyId, scopes: z.array(z.string()).meta({ description: 'What the key allows' }) },
    example: { ...byUser, keyId: KEY, scopes: ['profile:read'] },
    kinds: { 'key-created': ({ id, scopes }) => ({ keyId: id, scopes: listOf(scopes) }) },
  }),
  'key.revoked': define({
    sentence:
      'The user revoked an access key. Keys also end with `sessions.ended` and whatever else ends every session.',
    data: { ...who, keyId },
    example: { ...byUser, keyId: KEY },
    kinds: { 'key-revoked': ({ id }) => ({ keyId: id }) },
  }),
  'second_factor.enabled': define({
    sentence: 'Logins need a code of an authenticator app from now on. All other sessions ended.',
    data: { ...who, secondFactor },
    example: { ...byUser, secondFactor: 'totp' },
    kinds: { 'totp-enabled': totp },
  }),
  'second_factor.disabled': define({
    sentence: 'Codes are no longer needed: the user turned them off, or an administrator removed the app.',
    data: { ...who, secondFactor },
    example: { ...byUser, secondFactor: 'totp' },
    kinds: {
      'totp-disabled': totp,
      'second-factors-removed': totp,
    },
  }),
  'grant.created': define({
    sentence: 'The user gave an application access to the account.',
    data: { ...who, applicationId },
    example: { ...byUser, applicationId: '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c' },
    kinds: { 'grant-created': ({ applicationId }) => ({ applicationId }) },
  }),
  'grant.revoked': define({
    sentence: 'The access of an application ended: by the user, by the application, or because a token was used twice.',
    data: { ...who, applicationId, sid: loginId },
    example: { ...byUser, applicationId: '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c' },
    kinds: {
      'grant-revoked': ({ applicationId, grant }) => ({ applicationId, ...(grant !== undefined && { sid: grant }) }),
    },
  }),
  'login.refused': define({
    sentence: 'A login to the account was refused. At most 20 per account and hour have an event.',
    data: {
      ...who,
      reason: z.string().meta({
        description:
          '`wrong-password`, `unverified`, `deleted`, `blocked`, `limited`, `wrong-code`, `wrong-passkey` or `cloned-passkey`',
      }),
    },
    example: { ...byUser, reason: 'wrong-password' },
    kinds: { 'login-refused': ({ reason }) => ({ reason }) },
  }),
  'upload.stored': define({
    sentence: 'An upload was checked and stored.',
    data: { ...who, key: objectKey },
    example: { ...byUser, key: 'uploads/0193b6e1-0c1a-7b1e-8f3e-5a2f6f0f9a10.webp' },
    kinds: { 'upload-stored': ({ key }) => ({ key }) },
  }),
  'upload.quarantined': define({
    sentence:
      'The scanner found malware in an upload: nobody can read it. It is deleted after 30 days, without another event.',
    data: {
      ...who,
      key: objectKey,
      finding: z.string().meta({ description: "The scanner's name of it" }),
      deletedAfter: z.iso.datetime().meta({ description: 'The file is deleted some time after this' }),
    },
    example: {
      ...byUser,
      key: 'uploads/0193b6e1-0c1a-7b1e-8f3e-5a2f6f0f9a10.pdf',
      finding: 'Eicar-Test-Signature',
      deletedAfter: '2026-12-23T09:30:00.000Z',
    },
    kinds: { 'upload-quarantined': ({ key, finding, deletedAfter }) => ({ key, finding, deletedAfter }) },
  }),
  'upload.removed': define({
    sentence: 'A stored upload was deleted: by the user, or because no profile shows the avatar any more.',
    data: { ...who, key: objectKey },
    example: { ...byUser, key: 'uploads/0193b6e1-0c1a-7b1e-8f3e-5a2f6f0f9a10.webp' },
    kinds: { 'upload-removed': ({ key }) => ({ key }) },
  }),
} satisfies Record<EventType, unknown>;

/** Everything that a public event says. */
export type PublicEvent = {
  [Type in EventType]: {
    id: string;
    number: number;
    type: Type;
    timestamp: string;
    data: z.output<(typeof publicEvents)[Type]['data']>;
  };
}[EventType];

/** `user.email_changed` → `UserEmailChangedEvent`. */
export const schemaNameOf = (type: EventType): string =>
  `${type.replaceAll(/(?:^|[._])(\w)/g, (_, letter: string) => letter.toUpperCase())}Event`;

const ID = '0193b6e1-2f40-7d11-a3c5-9b8d7e6f5a41';

/** A sent event, for the documents and tests. */
export const exampleOf = (type: EventType) => ({
  id: ID,
  number: 42,
  type,
  timestamp: '2026-11-23T09:30:00.123Z',
  data: publicEvents[type].example,
});

const schemaOf = (type: EventType) =>
  z
    .object({
      id: z.string().meta({ description: 'The same however often the event is sent' }),
      number: z.int().meta({ description: 'Its place in the stream: grows in the order of commits' }),
      type: z.literal(type),
      timestamp: z.iso.datetime().meta({ description: 'The time of the cause, by the clock of the database' }),
      data: publicEvents[type].data,
    })
    .meta({ id: schemaNameOf(type), description: publicEvents[type].sentence, example: exampleOf(type) });

export const eventSchemas = Object.fromEntries(eventTypes.map((type) => [type, schemaOf(type)])) as Record<
  EventType,
  ReturnType<typeof schemaOf>
>;

const [first, ...others] = Object.values(eventSchemas);

/** Any public event, told apart by `type`. */
export const publicEvent = z
  .discriminatedUnion('type', [first as NonNullable<typeof first>, ...others])
  .meta({ id: 'PublicEvent' }) as unknown as z.ZodType<PublicEvent>;

const typeOfKind = new Map(eventTypes.flatMap((type) => kindsOf(type).map((kind) => [kind, type] as const)));

/** The kinds with which sessions end, or access of applications that lives longer than its session. */
export const endingKinds = [
  'logged-out',
  'session-ended',
  'sessions-ended',
  'not-me',
  'password-changed',
  'email-changed',
  'email-change-undone',
  'login-methods-removed',
  'identity-unlinked',
  'passkey-removed',
  'totp-enabled',
  'totp-disabled',
  'second-factors-removed',
  'role-changed',
  'blocked',
  'deletion-requested',
  'grant-revoked',
] as const satisfies EventKind[];

/** The kinds of all public types. */
export const publicKinds = [...typeOfKind.keys()];

/** False for a kind of a newer release. */
export const isKnownKind = (kind: string): boolean => Object.hasOwn(eventKinds, kind);

/** Undefined for an internal kind, and for one of a newer release. */
export const typeOf = (kind: string): EventType | undefined => typeOfKind.get(kind as EventKind);

export function kindsOf(type: EventType): EventKind[] {
  return Object.keys(publicEvents[type].kinds) as EventKind[];
}

/** A row of the activity with a number. */
export interface NumberedEvent {
  id: string;
  number: number;
  kind: string;
  userId: string;
  actor: string;
  /** JSON. */
  details: string | null;
  createdAt: number;
}

/** Undefined for an internal event. */
export function toPublicEvent(row: NumberedEvent): PublicEvent | undefined {
  const type = typeOf(row.kind);
  if (type === undefined) return undefined;
  const { data, kinds } = publicEvents[type];
  const pick = kinds[row.kind as keyof typeof kinds] as (details: unknown) => object;
  return {
    id: row.id,
    number: row.number,
    type,
    timestamp: new Date(row.createdAt).toISOString(),
    data: {
      userId: row.userId,
      ...('actor' in data.shape && { actor: row.actor }),
      ...pick(JSON.parse(row.details ?? '{}')),
    },
  } as PublicEvent;
}
