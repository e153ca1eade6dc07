import type { Config } from '../../config/index.ts';
import { addressPerHost } from '../../config/values.ts';

/** Takes every secret of the configuration out of a text: errors of libraries and servers may quote one. */
export function withoutSecrets(text: string, config: Config): string {
  const { databaseUrl, databaseReplicaUrls, redisUrl, redisSentinel, smtpUrl, s3, appSecrets, identityProviders } =
    config;
  const databases = [databaseUrl ?? '', ...databaseReplicaUrls].flatMap(addressPerHost);
  const passwords = [...databases, redisUrl, smtpUrl].flatMap((address) => {
    const password = URL.parse(address ?? '')?.password ?? '';
    return [password, decodeURIComponent(password)];
  });
  const clientSecrets = [...identityProviders.values()].map(({ clientSecret }) => clientSecret);
  const secrets = [
    ...passwords,
    redisSentinel?.password,
    s3?.secretKey,
    ...(appSecrets ?? []),
    ...clientSecrets,
  ].filter((secret) => secret !== undefined);
  return secrets.reduce((safe, secret) => (secret === '' ? safe : safe.replaceAll(secret, '…')), text);
}
