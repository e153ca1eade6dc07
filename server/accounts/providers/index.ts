import type { Activity } from '../../activity/index.ts';
import type { Config } from '../../config/index.ts';
import type { Limits } from '../../limits/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import type { IdentityProvider } from '../../parts/identity-provider/contract.ts';
import type { KeyValueStore } from '../../parts/key-value/contract.ts';
import type { ProviderName } from '../../shared/method-names.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Login } from '../login/index.ts';
import type { MailRules } from '../mail/index.ts';
import type { Sessions } from '../sessions/index.ts';
import type { DeleteUser, Users } from '../users/index.ts';
import { createIdentityLinks } from './links.ts';
import { createProviderLogin } from './login.ts';

export { type FlowPurpose, flowPurposes, STATE_LIFE_MS } from './flows.ts';
export { isStorableIdentity } from './identity-keys.ts';
export type { IdentityLinks, ListedIdentity } from './links.ts';
export type { FlowEnd } from './outcomes.ts';

interface Parts {
  database: Database;
  activity: Activity;
  store: KeyValueStore;
  limits: Limits;
  users: Users;
  mail: MailRules;
  sessions: Sessions;
  login: Login;
  deleteUser: DeleteUser;
  /** By name. Empty without configured or embedded providers. */
  identityProviders: ReadonlyMap<ProviderName, IdentityProvider>;
  log: Log;
}

/** Identities at providers: logins, links and reauthentication. */
export function createProviders({ ownAvatars }: Config, parts: Parts) {
  const { database, activity, store, limits, users, mail, sessions, login, deleteUser, identityProviders, log } = parts;
  const { consents, registration } = users;
  const names = [...identityProviders.keys()];
  const links = createIdentityLinks({ ...mail, database, providers: names });
  return {
    names,
    /** The providers that support reauthentication. */
    reauthenticating: names.filter((name) => identityProviders.get(name)?.provesLogin),
    links,
    login: createProviderLogin({
      ...mail,
      consents,
      database,
      deleteUser,
      devices: sessions.devices,
      completeFirstFactor: login.steps.completeFirstFactor,
      identityProviders,
      limits,
      links,
      log,
      recordRefusal: login.recordRefusal,
      recordUnmailed: activity.record,
      registration,
      secondFactors: login.secondFactors,
      sessions,
      store,
      takesPictures: !ownAvatars,
    }),
  };
}
