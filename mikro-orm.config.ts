import { loadConfig } from './server/config/index.ts';
import { migrationOptions } from './server/parts/database/options.ts';
import { trustAuthorities } from './server/process/authorities.ts';

const config = loadConfig();
trustAuthorities(config);

/** For the MikroORM command line: the database that the service would use with this environment. */
export default await migrationOptions(config);
