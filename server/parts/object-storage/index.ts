import type { Config } from '../../config/index.ts';
import type { Secrets } from '../../secrets.ts';
import type { ObjectStorage } from './contract.ts';

/** S3 if configured, else a directory in DATA_DIR with addresses signed by `secrets`. Loads only the one in use. */
export async function openObjectStorage(
  config: Pick<Config, 's3' | 'production' | 'origins' | 'dataDir' | 'appUrl'>,
  secrets: Secrets,
): Promise<ObjectStorage> {
  if (config.s3) return (await import('./s3.ts')).s3Storage(config.s3, config);
  return (await import('./disk.ts')).diskStorage({ ...config, secrets });
}
