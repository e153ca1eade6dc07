import { isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Accounts } from '../accounts/index.ts';
import { loadConfig } from '../config/index.ts';
import { type ErrorCode, ServiceError } from '../errors.ts';
import { createLog } from '../log.ts';
import { openIdentityProviders } from '../parts/identity-provider/index.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import { createRules, openParts } from '../rules.ts';
import { createSecrets } from '../secrets.ts';
import { trustAuthorities } from '../start/authorities.ts';
import { prepareDataDir } from '../start/data-dir.ts';
import { applicationSecrets } from '../start/secret.ts';
import { readTexts } from '../texts/index.ts';
import { explain, requireCurrentSchema, UsageError } from './failure.ts';
import { commands } from './user/commands.ts';

/**
 * `npm run user -- COMMAND …` looks after users at the command line, on the parts that are configured, while the service runs
 * or not. Mails are queued: the service sends them. Exit code 1 where the command is refused, such as for an address without
 * an account; 2 where it is not understood, or a part is down.
 */

/** The longest wait for the key-value store, which one command uses. */
const STORE_WAIT_MS = 5000;
const REFUSALS: ErrorCode[] = [
  'NOT_FOUND',
  'LAST_ADMINISTRATOR',
  'UNPROVEN_ACCOUNT',
  'EMAIL_TAKEN',
  'REGISTRATION_CLOSED',
  'RATE_LIMITED',
];

const usage = `Usage: npm run user -- COMMAND [--json]

${Object.entries(commands)
  .map(([name, { takes, does }]) => `  ${`${name} ${takes}`.padEnd(30)} ${does}`)
  .join('\n')}`;

function parse() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { json: { type: 'boolean', default: false }, address: { type: 'string' } },
  });
  const [name = '', argument = '', ...rest] = positionals;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  const { json, address } = values;
  const isComplete = argument !== '' || command?.takes.startsWith('[');
  if (!command || !isComplete || rest.length > 0) throw new UsageError(usage);
  if (address !== undefined && (name !== 'unlock' || isIP(address) === 0)) throw new UsageError(usage);
  return { command, argument, json, address };
}

/** A connection to Redis is made in the background, and commands before it are refused. Rejects once it has taken too long. */
async function whenReady(store: KeyValueStore): Promise<void> {
  const deadline = Date.now() + STORE_WAIT_MS;
  while (Date.now() < deadline) {
    if (
      await store.ping().then(
        () => true,
        () => false,
      )
    )
      return;
    await delay(100);
  }
  throw new UsageError('The key-value store does not answer: `npm run doctor` says why');
}

/** The rules on the configured parts, whose schema must be up to date. */
async function withAccounts<Result>(
  work: (accounts: Accounts, store: KeyValueStore) => Promise<Result>,
): Promise<Result> {
  const config = loadConfig();
  trustAuthorities(config);
  // Where a secret is made there.
  if (!config.appSecrets) prepareDataDir(config.dataDir);
  const texts = readTexts(config.textsDir);
  const log = await createLog({ ...config, logLevel: 'silent' }, process.stderr);
  const secrets = createSecrets(applicationSecrets(config));
  const parts = await openParts(config, { secrets, log });
  const identityProviders = openIdentityProviders(config.identityProviders);
  const { accounts } = createRules(config, parts, {
    identityProviders,
    secrets,
    texts,
    log,
  });
  try {
    await requireCurrentSchema(parts.database);
    return await work(accounts, parts.store);
  } finally {
    await parts.close();
  }
}

async function run(): Promise<void> {
  const { command, argument, json, address } = parse();
  const { text, data } = await withAccounts(async (accounts, store) => {
    if (address !== undefined) await whenReady(store);
    return command.run(accounts, argument, { address });
  });
  process.stdout.write(json ? `${JSON.stringify(data)}\n` : text);
}

await run().catch((error: unknown) => {
  process.stderr.write(`${explain(error, usage)}\n`);
  process.exitCode = error instanceof ServiceError && REFUSALS.includes(error.code) ? 1 : 2;
});
