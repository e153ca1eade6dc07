import type { Activity } from '../../activity/index.ts';
import type { Config } from '../../config/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import type { KeyValueStore } from '../../parts/key-value/contract.ts';
import type { Secrets } from '../../secrets.ts';
import type { Outbox } from '../mail/index.ts';
import type { Users } from '../users/index.ts';
import { createKnownDevices } from './known-devices.ts';
import { createSessionRows } from './rows.ts';
import { createSessionStore } from './sessions.ts';

export {
  activeAdministrators,
  asAdministrator,
  endAdministrator,
  lockStillAdministrator,
  requireStillAdministrator,
} from './administrators.ts';
export { type DeviceRequest, isDeviceCookie, type KnownDevices } from './known-devices.ts';
export {
  changeAsOwner,
  deleteSessions,
  deleteSessionsThrough,
  endOtherSessions,
  endSessionsOf,
  isSessionOpen,
  lockOwner,
  type NextSession,
} from './of-user.ts';
export type { Authentication, ListedSession } from './rows.ts';
export type {
  Credential,
  Login,
  LoginRequest,
  OwnSession,
  RotatedSession,
  Session,
} from './sessions.ts';

interface Parts {
  database: Database;
  activity: Activity;
  store: KeyValueStore;
  secrets: Secrets;
  outbox: Outbox;
  users: Pick<Users, 'find' | 'customFields'>;
}

type Settings = Pick<Config, 'impersonation'>;

/** Sessions, and the devices from which users have logged in. */
export function createSessions(
  { impersonation }: Settings,
  { database, activity, store, secrets, outbox, users }: Parts,
) {
  const allowsImpersonation = impersonation !== 'off';
  const rows = createSessionRows(database, activity, users.customFields);
  const devices = createKnownDevices({ database, activity, secrets, outbox });
  return {
    ...createSessionStore({ store, users, rows, devices, outbox, allowsImpersonation }),
    devices,
    sweep: rows.sweep,
  };
}

export type Sessions = ReturnType<typeof createSessions>;
