import { ConfigError, loadConfig } from '../config/index.ts';
import { describeFailure } from '../parts/database/failure.ts';
import { openDatabase } from '../parts/database/index.ts';

/** `npm run migrate`: brings the schema up to date and ends, for deployments that do so before they start instances. */
async function migrate(): Promise<void> {
  const database = await openDatabase(loadConfig());
  const applied = await database.migrate().finally(() => database.close());
  process.stdout.write(applied.length > 0 ? `Applied ${applied.join(', ')}\n` : 'The schema is up to date\n');
}

migrate().catch((error: unknown) => {
  const explanation = error instanceof ConfigError ? error.message : describeFailure(error);
  process.stderr.write(`${explanation ?? (error as Error).stack}\n`);
  process.exitCode = 1;
});
