import type { Config } from '../config/index.ts';

/** The message at start for a new developer: where everything is, and which parts are embedded. */
export function banner(config: Config, { embeddedProvider }: { embeddedProvider: boolean }): string {
  const { appUrl, databaseUrl, redisUrl, smtpUrl, s3, identityProvider, dataDir } = config;
  const embedded = [
    !databaseUrl && 'database',
    !redisUrl && 'key-value store',
    !smtpUrl && 'mail',
    !s3 && 'object storage',
    embeddedProvider && 'identity provider',
  ].filter(Boolean);
  const lines = [
    ['Account service', appUrl],
    ['API description', `${appUrl}/openapi.json`],
    ['Try it', `${appUrl}/docs`],
    ...(identityProvider.client || embeddedProvider
      ? [['Provider login', `${appUrl}/auth/${identityProvider.name}`]]
      : []),
    ...(smtpUrl ? [] : [['Mailbox', `${appUrl}/dev/mail`]]),
    ['Embedded parts', embedded.length > 0 ? `${embedded.join(', ')} (in ${dataDir})` : 'none'],
  ];
  return `\n${lines.map(([label, value]) => `  ${label?.padEnd(17)}${value}`).join('\n')}\n\n`;
}
