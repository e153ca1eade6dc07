import type { Config } from '../../config/index.ts';
import type { Secrets } from '../../secrets.ts';
import type { ObjectStorage } from './contract.ts';

/**
 * S3 where the configuration names one, else a directory in DATA_DIR. `secrets` sign the addresses of the latter. Only the
 * one that is used is loaded.
 */
export async function openObjectStorage(
  config: Pick<Config, 's3' | 'production' | 'origins' | 'dataDir' | 'appUrl'>,
  secrets: Secrets,
): Promise<ObjectStorage> {
  if (config.s3) return (await import('./s3.ts')).s3Storage(config.s3, config);
  return (await import('./disk.ts')).diskStorage({ ...config, secrets });
}
