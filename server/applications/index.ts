import type { Activity } from '../activity/index.ts';
import type { Config } from '../config/index.ts';
import type { Limits } from '../limits/index.ts';
import type { Database } from '../parts/database/contract.ts';
import { type ApplicationNeeds, createApplicationActs } from './applications.ts';

export {
  type ApplicationFields,
  type ApplicationRow,
  hasSecret,
  type ListedApplication,
  listedColumns,
  toListed,
} from './applications.ts';
export { assertionAlgorithms, type PublicKey, publicKey } from './public-keys.ts';

interface Parts extends Pick<ApplicationNeeds, 'sender' | 'setLogoutAddress'> {
  database: Database;
  activity: Activity;
  limits: Limits;
}

/** The applications whose users log in here. */
export const createApplications = ({ production }: Pick<Config, 'production'>, { activity, ...parts }: Parts) =>
  createApplicationActs({ ...parts, recordUnmailed: activity.record, isProduction: production });

export type Applications = ReturnType<typeof createApplications>;
