import { parseArgs } from 'node:util';
import { loadConfig } from '../config/index.ts';
import { openDatabase } from '../parts/database/index.ts';
import { trustAuthorities } from '../process/authorities.ts';
import { createLog } from '../telemetry/log.ts';
import { explain } from './failure.ts';

/**
 * `npm run migrate` migrates the schema and ends, for deployments that do so before they start instances. With
 * `--check` it lists pending migrations: exit code 1 if there are any, 2 after a failure.
 */
async function migrate({ check }: { check: boolean }): Promise<void> {
  const config = loadConfig();
  trustAuthorities(config);
  const database = await openDatabase(config, await createLog(config, process.stderr));
  const names = await (check ? database.pendingMigrations() : database.migrate()).finally(() => database.close());
  const list = `${check ? 'To apply:' : 'Applied'} ${names.join(', ')}`;
  process.stdout.write(`${names.length > 0 ? list : 'The schema is up to date'}\n`);
  if (check && names.length > 0) process.exitCode = 1;
}

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });

migrate(values).catch((error: unknown) => {
  process.stderr.write(`${explain(error)}\n`);
  process.exitCode = values.check ? 2 : 1;
});
