import { parseArgs } from 'node:util';
import { type ErrorCode, ServiceError } from '../errors.ts';
import { explain, UsageError } from './failure.ts';
import { withRules } from './rules.ts';
import { commands } from './webhook/commands.ts';

/**
 * `npm run webhook -- COMMAND …` administers webhooks on the configured parts; the service delivers. Exit code 1: refused
 * (unknown webhook, a failed test), 2: wrong use, or a part is down.
 */

const REFUSALS: ErrorCode[] = ['NOT_FOUND', 'VALIDATION_FAILED', 'TOO_MANY_WEBHOOKS', 'WEBHOOK_DISABLED'];

const usage = `Usage: npm run webhook -- COMMAND [--json]

${Object.entries(commands)
  .map(([name, { takes, does }]) => `  ${`${name} ${takes}`.padEnd(40)} ${does}`)
  .join('\n')}`;

async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: 'boolean', default: false },
      types: { type: 'string' },
      description: { type: 'string' },
      'include-user': { type: 'boolean', default: false },
    },
  });
  const [name = '', argument = '', second = '', ...rest] = positionals;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  const count = [argument, second].filter(Boolean).length;
  if (!command || rest.length > 0 || count !== command.arguments) throw new UsageError(usage);
  const { text, data, hasFailed } = await withRules(({ webhooks }) =>
    command.run(webhooks, [argument, second], values),
  );
  process.stdout.write(values.json ? `${JSON.stringify(data)}\n` : text);
  if (hasFailed) process.exitCode = 1;
}

await run().catch((error: unknown) => {
  const details = error instanceof ServiceError ? Object.values(error.details ?? {}) : [];
  process.stderr.write(`${[explain(error, usage), ...details.map(({ message }) => message)].join('\n')}\n`);
  process.exitCode = error instanceof ServiceError && REFUSALS.includes(error.code) ? 1 : 2;
});
