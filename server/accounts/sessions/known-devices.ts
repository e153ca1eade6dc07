/**
 * The devices from which users have logged in (OWASP, "Device cookies"). The cookie of a device holds its random id and
 * one mark per user: the HMAC of that id, the user's id, the user's device epoch and the generation of the mark. It
 * contains no user ids, and only this service can create a mark. No list of devices is stored: a higher epoch
 * invalidates all marks of a user, a new generation invalidates the oldest ones.
 * A login from an unknown device is reported by mail, and only a reported login makes its device known. The first login
 * of an account is reported too: the account may be imported or its password leaked, and the login another person's.
 */
import { timingSafeEqual } from 'node:crypto';
import type { User } from '../../../entities/user.ts';
import type { Caller } from '../../activity/caller.ts';
import { type Activity, TOLD_LOGIN } from '../../activity/index.ts';
import type { DetailsOf, EventKind } from '../../activity/kinds.ts';
import { ServiceError } from '../../errors.ts';
import { isToken, newToken } from '../../lib/random-token.ts';
import { type AllTables, type Database, sql } from '../../parts/database/contract.ts';
import type { Secrets } from '../../secrets.ts';
import type { LoginMethod } from '../../shared/method-names.ts';
import { type Outbox, type ReportedLogin, toDetail } from '../mail/index.ts';
import type { Account, LockedUser, LoginAccount } from '../users/index.ts';

/** The maximum of users with a mark in one device cookie: the latest to log in. */
const MAX_USERS = 10;
/**
 * A client that does not keep cookies is a new device at each login. The same device at the same address is reported
 * once in this time: the link in that mail still works.
 */
const REPORTED_MS = 24 * 60 * 60_000;
/**
 * The maximum of mails about logins by one method, and by all of them. Each of these mails has a link that ends all sessions
 * and removes the method. An event that forgets all devices resets the first: a thief repeats it up to the second.
 */
const REPORTS = { max: 10, most: 50, withinMs: 60 * 60_000 };
/** A login is compared with this many of the newest reports. */
const MAX_COMPARED = 100;
/** Marks are issued in generations of this size. The last two are valid, so at most 100 devices are known. */
const MARKS_OF_A_GENERATION = 50;

/** The events that forget all devices. The next login is reported even if it was reported before. */
const forgettingEvents: readonly EventKind[] = [
  'not-me',
  'password-changed',
  'totp-enabled',
  'sessions-ended',
  'blocked',
  'role-changed',
  'email-change-undone',
  'login-methods-removed',
  'deletion-requested',
];

/** Whether a text has the form of the device cookie: the device id, and a mark for each user. */
export function isDeviceCookie(text: string): boolean {
  const parts = text.split('.', 1 + MAX_USERS + 1);
  return parts.length <= 1 + MAX_USERS && parts.every(isToken);
}

/** A request that logs in, or makes a device known otherwise. */
export type DeviceRequest = Caller & {
  /** The device cookie of the request, if well-formed. */
  deviceCookie: string | undefined;
};

/** The columns of a user that marks depend on. */
type UserWithDevices = Pick<User, 'id'> & { [Field in 'deviceEpoch' | 'deviceMarks']?: User[Field] };

interface DeviceOwner extends Pick<LoginAccount, 'deviceEpoch' | 'deviceMarks'> {
  id: string;
}

/** The login that opens a session. */
type NewLogin = Omit<ReportedLogin, 'at'> & {
  /** The second factor, if given. */
  secondFactor?: DetailsOf<'logged-in'>['secondFactor'] | undefined;
  /** The id of its session. */
  session: string;
};

const detailsOf = ({ method, secondFactor, session }: NewLogin) => ({
  method,
  ...(secondFactor && { secondFactor }),
  session,
});

/** `isNews`: a mail about the login is queued. Call `outbox.wake` after the commit. */
interface RecordedLogin {
  deviceCookie: string;
  isNews: boolean;
}

interface Parts {
  database: Pick<Database, 'now'>;
  activity: Activity;
  secrets: Secrets;
  outbox: Pick<Outbox, 'enqueue'>;
}

/** Issues and verifies the marks in device cookies. */
export const createKnownDevices = ({ database, activity, secrets, outbox }: Parts) => {
  /** The first generation has the label of the previous release, which had no generations. */
  const marksOf = (deviceId: string, { id, deviceEpoch }: DeviceOwner, generation: number) => {
    const label = `known-device:${deviceId}:${id}:${deviceEpoch ?? 0}` as const;
    return secrets.derive(generation === 0 ? label : (`${label}:${generation}` as const));
  };

  /**
   * The device of a cookie, or a new one. `isKnown`: the cookie has a valid mark of the user; `isCurrent`: one of the
   * current generation. `unmarked`: the cookie as it is; `marked`: with a current mark.
   */
  const deviceOf = (cookie: string | undefined, owner: DeviceOwner) => {
    const [deviceId = newToken(), ...marks] = cookie?.split('.') ?? [];
    const generation = Math.floor((owner.deviceMarks ?? 0) / MARKS_OF_A_GENERATION);
    const current = marksOf(deviceId, owner, generation);
    const former = marksOf(deviceId, owner, generation - 1);
    const has = (good: string[]) => good.some((mark) => marks.some((each) => isSame(each, mark)));
    const isCurrent = has(current);
    const others = marks.filter((mark) => ![...current, ...former].includes(mark));
    return {
      deviceId,
      isKnown: has(former) || isCurrent,
      isCurrent,
      unmarked: [deviceId, ...marks].join('.'),
      marked: [deviceId, current[0], ...others].slice(0, 1 + MAX_USERS).join('.'),
    };
  };

  /**
   * The cookie with a new mark, counted first, so that concurrent logins have different numbers. Uses the epoch as
   * read: if all devices are forgotten after that, this mark is invalid too.
   */
  const withNewMark = async (tables: AllTables, cookie: string, owner: DeviceOwner): Promise<string> => {
    const count = sql<number>`coalesce(device_marks, 0) + 1`;
    await tables.updateTable('users').set({ device_marks: count }).where('id', '=', owner.id).execute();
    const { deviceMarks } = await tables
      .selectFrom('users')
      .select('device_marks as deviceMarks')
      .where('id', '=', owner.id)
      .executeTakeFirstOrThrow();
    return deviceOf(cookie, { ...owner, deviceMarks }).marked;
  };

  const reportedLogins = async (
    tables: AllTables,
    userId: string,
    from: number,
    { since = ['not-me'], ...part }: { since?: readonly EventKind[]; most?: number; order?: 'asc' | 'desc' } = {},
  ): Promise<ReportedLogin[]> => {
    const events = await activity.toldLogins(tables, userId, { from, since, ...part });
    return events.map(({ createdAt, address, device, details }) => ({
      at: createdAt,
      // An event of a login has it.
      method: details?.['method'] as LoginMethod,
      address,
      device,
    }));
  };

  /**
   * Records the event and queues its mail, unless a similar one was sent recently or the limit is reached. Resolves to
   * whether it did.
   */
  const report = async (
    tables: AllTables,
    user: Account,
    login: ReportedLogin & NewLogin,
    request: DeviceRequest,
    formerLanguage: string | null,
  ) => {
    const lately = await reportedLogins(tables, user.id, Date.now() - REPORTED_MS, {
      since: forgettingEvents,
      most: MAX_COMPARED,
    });
    const ofMethod = lately.filter(({ method, at }) => method === login.method && at > login.at - REPORTS.withinMs);
    if (ofMethod.length >= REPORTS.max || lately.some((other) => isAlike(other, login))) return false;
    if (await activity.hasMost(tables, user.id, TOLD_LOGIN, REPORTS)) return false;
    const { id: userId, email } = user;
    const details = { ...detailsOf(login), device: 'new' } as const;
    await activity.record(tables, userId, { kind: 'logged-in', details }, request);
    // Another person may be logging in, so the language of this browser is only the last choice.
    const language = () => formerLanguage ?? request.language();
    await outbox.enqueue(tables, { kind: 'new-device', email, userId, detail: toDetail(login) }, { language });
    return true;
  };

  return {
    /**
     * The logins since `from` that were reported by mail and not disowned, by default latest first. `from` in milliseconds
     * since 1970, by process clocks.
     */
    reportedLogins,

    /**
     * The session id, or else the device id, by which the account knows the request. Undefined if unknown. The work is
     * the same for an unknown account.
     */
    knownBy(
      account: Pick<LoginAccount, 'user' | 'deviceEpoch' | 'deviceMarks'> | undefined,
      {
        session,
        deviceCookie,
      }: { session?: { id: string | undefined; user: Pick<Account, 'id'> }; deviceCookie?: string | undefined },
    ): string | undefined {
      if (session) return session.user.id === account?.user.id ? session.id : undefined;
      if (deviceCookie === undefined) return undefined;
      const { user = { id: '' }, deviceEpoch = 0, deviceMarks = 0 } = account ?? {};
      const { deviceId, isKnown } = deviceOf(deviceCookie, { id: user.id, deviceEpoch, deviceMarks });
      return isKnown ? deviceId : undefined;
    },

    /** The cookie of a device that becomes known without a login. */
    mark: (cookie: string | undefined, user: UserWithDevices): string => deviceOf(cookie, ownerOf(user)).marked,

    /**
     * Keeps this device known while all devices of the user are forgotten: call it before, and its result after. The
     * result is the new cookie, or undefined if the device was unknown.
     */
    keep(cookie: string | undefined, user: LockedUser): () => string | undefined {
      const { isKnown } = deviceOf(cookie, ownerOf(user));
      return () => (isKnown ? deviceOf(cookie, ownerOf(user)).marked : undefined);
    },

    /**
     * Records a login in the transaction that opens its session, and reports it by mail if the device is new to the
     * user.
     */
    async recordLogin(
      tables: AllTables,
      user: Account,
      login: NewLogin,
      request: DeviceRequest,
    ): Promise<RecordedLogin> {
      const row = await tables
        .selectFrom('users')
        .select([
          'id',
          'device_epoch as deviceEpoch',
          'device_marks as deviceMarks',
          'session_epoch',
          'deleted_at',
          'blocked_at',
          'browser_language as language',
        ])
        .select(sql<number>`${database.now}`.as('now'))
        .where('id', '=', user.id)
        .executeTakeFirst();
      // Deleted or blocked since the credential was checked.
      if (!row || row.deleted_at !== null) throw new ServiceError('INVALID_CREDENTIALS');
      if (row.blocked_at !== null) throw new ServiceError('ACCOUNT_BLOCKED');
      const device = deviceOf(request.deviceCookie, row);
      // All sessions have ended since, including this one: the device does not become known.
      if (row.session_epoch !== user.sessionEpoch) return { deviceCookie: device.unmarked, isNews: false };
      const language = request.language();
      if (language !== undefined && language !== row.language) {
        await tables
          .updateTable('users')
          .set({ browser_language: language })
          .where('id', '=', user.id)
          .where('session_epoch', '=', user.sessionEpoch)
          .execute();
      }
      const isNews =
        !device.isKnown && (await report(tables, user, { at: Number(row.now), ...login }, request, row.language));
      if (!isNews) {
        await activity.record(tables, user.id, { kind: 'logged-in', details: detailsOf(login) }, request);
      }
      if (device.isCurrent) return { deviceCookie: device.marked, isNews };
      const isMarked = device.isKnown || isNews;
      return { deviceCookie: isMarked ? await withNewMark(tables, device.unmarked, row) : device.unmarked, isNews };
    },
  };
};

/** A new user has neither an epoch nor marks. */
const ownerOf = ({ id, deviceEpoch, deviceMarks }: UserWithDevices): DeviceOwner => ({
  id,
  deviceEpoch: deviceEpoch ?? null,
  deviceMarks: deviceMarks ?? null,
});

/** Whether a user who was mailed about one login needs no mail about the other. */
const isAlike = (one: ReportedLogin, other: ReportedLogin) =>
  one.method === other.method && one.address === other.address && one.device === other.device;

/** Compares in constant time. Both have the form of a mark. */
const isSame = (mark: string, other: string) => timingSafeEqual(Buffer.from(mark), Buffer.from(other));

export type KnownDevices = ReturnType<typeof createKnownDevices>;
