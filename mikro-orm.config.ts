import { loadConfig } from './server/config/index.ts';
import { migrationOptions } from './server/parts/database/options.ts';

/** For the MikroORM command line: the same database that the service would use with this environment. */
export default await migrationOptions(loadConfig());
