import { existsSync } from 'node:fs';
import { createRules, openParts } from '../assemble.ts';
import { loadConfig } from '../config/index.ts';
import { sqliteFileIn } from '../parts/database/options.ts';
import { openIdentityProviders } from '../parts/identity-provider/index.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import { trustAuthorities } from '../process/authorities.ts';
import { prepareDataDir } from '../process/data-dir.ts';
import { applicationSecrets } from '../process/secret.ts';
import { createSecrets } from '../secrets.ts';
import { createLog } from '../telemetry/log.ts';
import { textsOf } from '../texts/index.ts';
import { requireCurrentSchema, UsageError } from './failure.ts';

export type Rules = ReturnType<typeof createRules>;

/** The rules on the configured parts, without workers; requires an up-to-date schema. */
export async function withRules<Result>(
  work: (rules: Rules, store: KeyValueStore) => Promise<Result>,
): Promise<Result> {
  const config = loadConfig();
  trustAuthorities(config);
  if (!config.databaseUrl && !existsSync(sqliteFileIn(config))) {
    throw new UsageError(
      `No service has run with DATA_DIR=${config.dataDir}: it has no database. Set DATA_DIR to that of the service`,
    );
  }
  // A secret may be generated there.
  if (!config.appSecrets) prepareDataDir(config.dataDir);
  const texts = textsOf(config);
  const log = await createLog({ ...config, logLevel: 'silent' }, process.stderr);
  const secrets = createSecrets(applicationSecrets(config));
  const parts = await openParts(config, { secrets, log });
  const identityProviders = openIdentityProviders(config.identityProviders);
  const rules = createRules(config, parts, { identityProviders, secrets, texts, log });
  try {
    await requireCurrentSchema(parts.database);
    return await work(rules, parts.store);
  } finally {
    await parts.close();
  }
}
