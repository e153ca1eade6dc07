import { parseArgs } from 'node:util';
import { type ErrorCode, ServiceError } from '../errors.ts';
import { commands } from './application/commands.ts';
import { explain, UsageError } from './failure.ts';
import { withRules } from './rules.ts';

/**
 * `npm run application -- COMMAND …` administers the applications whose users log in here. Exit code 1: refused (unknown
 * application, an address that is not allowed), 2: wrong use, or a part is down.
 */

const REFUSALS: ErrorCode[] = ['NOT_FOUND', 'VALIDATION_FAILED', 'TOO_MANY_APPLICATIONS'];

const usage = `Usage: npm run application -- COMMAND [--json]

${Object.entries(commands)
  .map(([name, { takes, does }]) => `  ${`${name} ${takes}`.trimEnd()}\n      ${does}`)
  .join('\n')}`;

async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: 'boolean', default: false },
      kind: { type: 'string' },
      redirect: { type: 'string', multiple: true },
      'post-logout': { type: 'string', multiple: true },
      'backchannel-logout': { type: 'string' },
      'public-keys': { type: 'string' },
      resource: { type: 'string', multiple: true },
      scopes: { type: 'string' },
      opaque: { type: 'boolean', default: false },
      trusted: { type: 'boolean', default: false },
    },
  });
  const [name = '', given = '', ...rest] = positionals;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!command || rest.length > 0 || (given === '') !== (command.takes === '')) throw new UsageError(usage);
  const { text, data } = await withRules(({ applications }) => command.run(applications, given, values));
  process.stdout.write(values.json ? `${JSON.stringify(data)}\n` : text);
}

await run().catch((error: unknown) => {
  const details = error instanceof ServiceError ? Object.values(error.details ?? {}) : [];
  process.stderr.write(`${[explain(error, usage), ...details.map(({ message }) => message)].join('\n')}\n`);
  process.exitCode = error instanceof ServiceError && REFUSALS.includes(error.code) ? 1 : 2;
});
