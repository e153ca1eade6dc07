import type { Config } from '../../config/index.ts';

/** Takes every secret of the configuration out of a text: errors of libraries and servers may quote one. */
export function withoutSecrets(text: string, config: Config): string {
  const { databaseUrl, redisUrl, smtpUrl, s3, appSecret, identityProviders } = config;
  const passwords = [databaseUrl, redisUrl, smtpUrl].flatMap((address) => {
    const password = URL.parse(address ?? '')?.password ?? '';
    return [password, decodeURIComponent(password)];
  });
  const clientSecrets = [...identityProviders.values()].map(({ clientSecret }) => clientSecret);
  const secrets = [...passwords, s3?.secretKey, appSecret, ...clientSecrets].filter((secret) => secret !== undefined);
  return secrets.reduce((safe, secret) => (secret === '' ? safe : safe.replaceAll(secret, '…')), text);
}
