import { isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type ErrorCode, ServiceError } from '../errors.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import { explain, UsageError } from './failure.ts';
import { withRules } from './rules.ts';
import { commands } from './user/commands.ts';

/**
 * `npm run user -- COMMAND …` administers users on the configured parts, also while the service is down; the service
 * sends queued mails. Exit code 1: refused (unknown address), 2: wrong use, or a part is down.
 */

/** The maximum wait for the key-value store, which one command uses. */
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

/** Redis connects in the background and refuses earlier commands. Rejects at the deadline. */
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
  throw new UsageError('The key-value store does not respond: run `npm run doctor`');
}

async function run(): Promise<void> {
  const { command, argument, json, address } = parse();
  const { text, data } = await withRules(async ({ accounts }, store) => {
    if (address !== undefined) await whenReady(store);
    return command.run(accounts, argument, { address });
  });
  process.stdout.write(json ? `${JSON.stringify(data)}\n` : text);
}

await run().catch((error: unknown) => {
  process.stderr.write(`${explain(error, usage)}\n`);
  process.exitCode = error instanceof ServiceError && REFUSALS.includes(error.code) ? 1 : 2;
});
