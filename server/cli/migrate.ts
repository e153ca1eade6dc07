import { parseArgs } from 'node:util';
import { loadConfig } from '../config/index.ts';
import { openDatabase } from '../parts/database/index.ts';
import { trustAuthorities } from '../start/authorities.ts';
import { explain } from './failure.ts';

/**
 * `npm run migrate` brings the schema up to date and ends, for deployments that do so before they start instances. With
 * `--check` it names what would run and changes nothing: the exit code is 1 if there is something, 2 after a failure.
 */
async function migrate({ check }: { check: boolean }): Promise<void> {
  const config = loadConfig();
  trustAuthorities(config);
  const database = await openDatabase(config);
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
