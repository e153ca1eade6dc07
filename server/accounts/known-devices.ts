import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { User } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import { ServiceError } from '../errors.ts';
import { type AllTables, type Database, prepared, sql } from '../parts/database/contract.ts';
import type { Secrets } from '../secrets.ts';
import type { Outbox } from './outbox.ts';
import { type ReportedLogin, toDetail } from './reported-login.ts';
import type { Account, LoginAccount } from './users.ts';

/** The most users whose marks the cookie of a device holds: those who logged in last. */
const MOST_USERS = 10;
/**
 * A program without a cookie jar, or a browser that drops its cookies, is new at each login. The same device at the same
 * address is reported once in this time: its user has been told, and the link of that mail still works.
 */
const REPORTED_MS = 24 * 60 * 60_000;

/** The detail `device` of a login that a mail reports. */
const NEW = 'new';

const newDeviceId = () => randomBytes(32).toString('base64url');

/** Whether a text has the shape of the cookie's value: the id of the device, and a mark for each user. */
export const isDeviceCookie = (text: string): boolean => /^[A-Za-z0-9_-]{43}(?:\.[A-Za-z0-9_-]{43}){0,10}$/.test(text);

/** The request of a login, or of what makes a device known without one. */
export interface DeviceRequest extends Caller {
  /** The cookie of the device that it carried, of that shape. */
  deviceCookie: string | undefined;
}

/** What opens the session. */
type NewLogin = Omit<ReportedLogin, 'at'> & {
  /** What was given after the credential. */
  secondFactor?: string | undefined;
};

const detailsOf = ({ method, secondFactor }: NewLogin) => ({ method, ...(secondFactor && { secondFactor }) });

/** What is looked at when a session is opened. */
interface UserAtLogin {
  epoch: number | null;
  session_epoch: number;
  deleted_at: number | null;
  blocked_at: number | null;
  language: string | null;
  now: number;
}

/** `isNews`: a mail about the login is queued; call `outbox.wake` after the commit. */
export interface RecordedLogin {
  deviceCookie: string;
  isNews: boolean;
}

interface Parts {
  database: Pick<Database, 'now'>;
  activity: Activity;
  secrets: Secrets;
  outbox: Pick<Outbox, 'enqueue'>;
}

/**
 * The devices that users have logged in from (OWASP, "Device cookies"). The cookie of a device is its random id and a mark
 * for each user: the HMAC of that id, the user's id and the user's device epoch. It names no user, only this service
 * can make a mark, and a higher epoch makes all marks of a user void without a list of devices.
 */
export const createKnownDevices = ({ database, activity, secrets, outbox }: Parts) => {
  const usersAtLogin = prepared<UserAtLogin>();
  const marksOf = (deviceId: string, userId: string, epoch: number) =>
    secrets.derive(`known-device:${deviceId}:${userId}:${epoch}`);

  /** A device by its cookie: whether it has the user's mark, and the cookie with that mark; a new one without a cookie. */
  const deviceOf = (cookie: string | undefined, userId: string, epoch: number) => {
    const [deviceId = newDeviceId(), ...marks] = cookie?.split('.') ?? [];
    const own = marksOf(deviceId, userId, epoch);
    const others = marks.filter((mark) => !own.includes(mark));
    return {
      deviceId,
      isKnown: own.some((mark) => marks.some((each) => isSame(each, mark))),
      unmarked: [deviceId, ...marks].join('.'),
      marked: [deviceId, own[0], ...others].slice(0, 1 + MOST_USERS).join('.'),
    };
  };

  /** Begins the user's first epoch. Answers false where another login has done so: of several at once one is the first. */
  const isFirst = async (tables: AllTables, userId: string): Promise<boolean> => {
    const { numUpdatedRows } = await tables
      .updateTable('users')
      .set({ device_epoch: 0 })
      .where('id', '=', userId)
      .where('device_epoch', 'is', null)
      .executeTakeFirst();
    return numUpdatedRows === 1n;
  };

  const reportedLogins = async (tables: AllTables, userId: string, withinMs: number): Promise<ReportedLogin[]> => {
    const search = { kind: 'logged-in', detail: ['device', NEW], withinMs, since: 'not-me' } as const;
    const events = await activity.recent(tables, userId, search);
    return events.map(({ createdAt, address, device, details }) => ({
      at: createdAt,
      method: details?.['method'] ?? '',
      address,
      device,
    }));
  };

  /** Records the event, and queues the mail about it unless it was sent lately. Answers whether it did. */
  const report = async (
    tables: AllTables,
    user: Account,
    login: ReportedLogin & NewLogin,
    request: DeviceRequest,
    formerLanguage: string | null,
  ) => {
    const lately = await reportedLogins(tables, user.id, REPORTED_MS);
    if (lately.some((other) => isAlike(other, login))) return false;
    const { id: userId, email } = user;
    const details = { ...detailsOf(login), device: NEW };
    await activity.record(tables, userId, { kind: 'logged-in', details }, request);
    // Another person may be logging in: the language of that browser counts only where no other is known.
    const language = () => formerLanguage ?? request.language();
    await outbox.enqueue(tables, { kind: 'new-device', email, userId, detail: toDetail(login) }, { language });
    return true;
  };

  return {
    /** The logins of the last `withinMs` that the user was told of by mail, and has not disowned, the latest first. */
    reportedLogins,

    /**
     * What the account knows a request by: the id of its session, or else of its device. Undefined if by nothing. The work is
     * the same where there is no such account.
     */
    knownBy(
      account: Pick<LoginAccount, 'user' | 'deviceEpoch'> | undefined,
      {
        session,
        deviceCookie,
      }: { session?: { id: string | undefined; user: Pick<Account, 'id'> }; deviceCookie?: string | undefined },
    ): string | undefined {
      if (session) return session.user.id === account?.user.id ? session.id : undefined;
      if (deviceCookie === undefined) return undefined;
      const { deviceId, isKnown } = deviceOf(deviceCookie, account?.user.id ?? '', account?.deviceEpoch ?? 0);
      return isKnown ? deviceId : undefined;
    },

    /** The cookie of a device that its user has made known otherwise than by a login. */
    mark: (cookie: string | undefined, { id, deviceEpoch }: Pick<User, 'id' | 'deviceEpoch'>): string =>
      deviceOf(cookie, id, deviceEpoch ?? 0).marked,

    /**
     * Records a login in the transaction that opens its session. From a device that the user has not logged in from
     * before it is reported by mail. The first login of all is no news: after the registration, and in an account
     * that is older than these cookies, where it would alarm every user once.
     */
    async recordLogin(
      tables: AllTables,
      user: Account,
      login: NewLogin,
      request: DeviceRequest,
    ): Promise<RecordedLogin> {
      const [row] = await usersAtLogin(tables, {
        shape: 'one',
        build: () =>
          tables
            .selectFrom('users')
            .select([
              'device_epoch as epoch',
              'session_epoch',
              'deleted_at',
              'blocked_at',
              'browser_language as language',
            ])
            .select(sql<number>`${database.now}`.as('now'))
            .where('id', '=', user.id),
        parameters: [user.id],
      });
      // Deleted or blocked since the credential was checked.
      if (!row || row.deleted_at !== null) throw new ServiceError('INVALID_CREDENTIALS');
      if (row.blocked_at !== null) throw new ServiceError('ACCOUNT_BLOCKED');
      const device = deviceOf(request.deviceCookie, user.id, row.epoch ?? 0);
      // All sessions have ended since then, and so has this one: it makes no device known.
      if (row.session_epoch !== user.sessionEpoch) return { deviceCookie: device.unmarked, isNews: false };
      const language = request.language();
      if (language !== undefined && language !== row.language) {
        await tables.updateTable('users').set({ browser_language: language }).where('id', '=', user.id).execute();
      }
      const isExpected = row.epoch === null ? await isFirst(tables, user.id) : device.isKnown;

      const isNews =
        !isExpected && (await report(tables, user, { at: Number(row.now), ...login }, request, row.language));
      if (!isNews) {
        await activity.record(tables, user.id, { kind: 'logged-in', details: detailsOf(login) }, request);
      }
      return { deviceCookie: device.marked, isNews };
    },
  };
};

/** For a user who has been told of one, the other is no news. */
const isAlike = (one: ReportedLogin, other: ReportedLogin) =>
  one.method === other.method && one.address === other.address && one.device === other.device;

/** In constant time. Both have the shape of a mark. */
const isSame = (mark: string, other: string) => timingSafeEqual(Buffer.from(mark), Buffer.from(other));

export type KnownDevices = ReturnType<typeof createKnownDevices>;
