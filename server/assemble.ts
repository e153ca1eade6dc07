import { createAccess } from './access/index.ts';
import { createAccounts } from './accounts/index.ts';
import { createActivity } from './activity/index.ts';
import { createApplications } from './applications/index.ts';
import { createChallenges } from './challenge/index.ts';
import type { Config } from './config/index.ts';
import { createEvents } from './events/index.ts';
import { createLimits } from './limits/index.ts';
import { createOAuth } from './oauth/index.ts';
import { openDatabase } from './parts/database/index.ts';
import type { IdentityProvider } from './parts/identity-provider/contract.ts';
import { openKeyValueStore } from './parts/key-value/index.ts';
import { openMail } from './parts/mail/index.ts';
import { openObjectStorage } from './parts/object-storage/index.ts';
import { openScanner } from './parts/scanner/index.ts';
import { createWebhookSender } from './parts/webhook-sender/index.ts';
import type { Secrets } from './secrets.ts';
import type { ProviderName } from './shared/method-names.ts';
import type { Log } from './telemetry/log.ts';
import type { Texts } from './texts/index.ts';
import { createUploads } from './uploads/index.ts';
import { createDeliveries, createLogoutAddresses, createWebhooks } from './webhooks/index.ts';

interface Setting {
  secrets: Secrets;
  log: Log;
}

/** Opens the configured parts without waiting for them. */
export async function openParts(config: Config, { secrets, log }: Setting) {
  const database = await openDatabase(config, log);
  const store = await openKeyValueStore(config, log);
  const mail = await openMail(config);
  const objects = await openObjectStorage(config, secrets);
  const sender = createWebhookSender(config);
  const scanner = await openScanner(config);
  return {
    database,
    store,
    mail,
    objects,
    sender,
    scanner,

    async close(): Promise<void> {
      mail.close();
      objects.close();
      sender.close();
      await Promise.all([store.close(), database.close()]);
    },
  };
}

type Parts = Awaited<ReturnType<typeof openParts>>;

/**
 * Creates the rooms of accounts, events and uploads on these parts, without running workers. `identityProviders` is by name.
 */
export function createRules(
  config: Config,
  { database, store, mail, objects, sender, scanner }: Parts,
  {
    identityProviders,
    secrets,
    texts,
    log,
  }: Setting & { identityProviders: ReadonlyMap<ProviderName, IdentityProvider>; texts: Texts },
) {
  const activity = createActivity(database, { keptDays: config.activityDays });
  const events = createEvents(config, { database, log });
  const uploads = createUploads(config, {
    database,
    activity,
    objects,
    scanning: scanner && {
      scanner,
      allowsWhenDown: config.scan?.allowsWhenDown === true,
      notices: {
        record: (...args) => accounts.mail.record(...args),
        wake: () => accounts.mail.outbox.wake(),
      },
    },
    log,
  });
  const { avatarChanged, removeAllOf: removeUploads } = uploads;
  const deliveries = createDeliveries(database);
  const limits = createLimits(store, config.rates);
  const challenges = createChallenges(config, { store, secrets });
  const accounts = createAccounts(config, {
    database,
    activity,
    store,
    limits,
    transport: mail,
    avatarChanged,
    removeUploads,
    removeDeliveries: deliveries.removeAllOf,
    publicUrl: objects.publicUrl,
    identityProviders,
    secrets,
    texts,
    log,
  });
  const applications = createApplications(config, {
    database,
    activity,
    limits,
    sender,
    setLogoutAddress: createLogoutAddresses(database),
  });
  const oauth = createOAuth(config, { database, store, activity, accounts, applications, limits, secrets, log });
  const webhooks = createWebhooks(config, {
    database,
    activity,
    accounts,
    events,
    limits,
    deliveries,
    logoutMessages: oauth.logoutMessages,
    sender,
    secrets,
    log,
  });
  const access = createAccess({
    database,
    users: accounts.users,
    ...accounts.mail,
    resolveToken: oauth.resolveToken,
  });
  return { accounts, access, applications, challenges, oauth, events, limits, uploads, webhooks };
}
