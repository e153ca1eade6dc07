import type { Config } from '../../config/index.ts';
import type { ObjectStorage } from './contract.ts';
import { diskStorage } from './disk.ts';
import { s3Storage } from './s3.ts';

/** S3 where the configuration names one, else a directory in DATA_DIR. `secret` signs the addresses of the latter. */
export const openObjectStorage = (
  config: Pick<Config, 's3' | 'production' | 'dataDir' | 'appUrl'>,
  secret: string,
): ObjectStorage =>
  config.s3 ? s3Storage(config.s3, { createBucket: !config.production }) : diskStorage({ ...config, secret });
