import { createAccounts } from './accounts/index.ts';
import { createActivity } from './activity/index.ts';
import type { Config } from './config/index.ts';
import type { Log } from './log.ts';
import { openDatabase } from './parts/database/index.ts';
import type { IdentityProvider } from './parts/identity-provider/contract.ts';
import { openKeyValueStore } from './parts/key-value/index.ts';
import { openMail } from './parts/mail/index.ts';
import { openObjectStorage } from './parts/object-storage/index.ts';
import type { Secrets } from './secrets.ts';
import type { Texts } from './texts/index.ts';
import { createUploads } from './uploads/index.ts';

interface Setting {
  secrets: Secrets;
  log: Log;
}

/** The parts that are configured. Waits for none of them. */
export async function openParts(config: Config, { secrets, log }: Setting) {
  const database = await openDatabase(config, log);
  const store = await openKeyValueStore(config, log);
  const mail = await openMail(config);
  const objects = await openObjectStorage(config, secrets);
  return {
    database,
    store,
    mail,
    objects,

    async close(): Promise<void> {
      mail.close();
      objects.close();
      await Promise.all([store.close(), database.close()]);
    },
  };
}

type Parts = Awaited<ReturnType<typeof openParts>>;

/** The rules about accounts and files, on these parts. No worker runs yet. `identityProviders`: by name. */
export function createRules(
  config: Config,
  { database, store, mail, objects }: Parts,
  {
    identityProviders,
    secrets,
    texts,
    log,
  }: Setting & { identityProviders: ReadonlyMap<string, IdentityProvider>; texts: Texts },
) {
  const activity = createActivity(database, { keptDays: config.activityDays });
  const uploads = createUploads(config, { database, activity, objects, log });
  const { avatarChanged, removeAllOf: removeUploads } = uploads;
  const accounts = createAccounts(config, {
    database,
    activity,
    store,
    mail,
    avatarChanged,
    removeUploads,
    publicUrl: objects.publicUrl,
    identityProviders,
    secrets,
    texts,
    log,
  });
  return { accounts, uploads };
}
