import type { Activity } from '../activity/index.ts';
import type { Config } from '../config/index.ts';
import type { Limits } from '../limits/index.ts';
import type { Database } from '../parts/database/contract.ts';
import { createApplicationActs } from './applications.ts';

export {
  type ApplicationFields,
  type ApplicationRow,
  hasSecret,
  type ListedApplication,
  listedColumns,
  MAX_APPLICATIONS,
  toListed,
} from './applications.ts';
export { assertionAlgorithms, type PublicKey, publicKey } from './public-keys.ts';

interface Parts {
  database: Database;
  activity: Activity;
  limits: Limits;
}

/** The applications whose users log in here. */
export const createApplications = ({ production }: Pick<Config, 'production'>, { database, activity, limits }: Parts) =>
  createApplicationActs({ database, limits, recordUnmailed: activity.record, isProduction: production });

export type Applications = ReturnType<typeof createApplications>;
