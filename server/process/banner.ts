import type { Config } from '../config/index.ts';

/** The names of the identity providers; `embeddedProvider` is true if the embedded one is among them. */
export interface Providers {
  providers: string[];
  embeddedProvider: boolean;
}

/** The start message for new developers: all URLs, and which parts are embedded. */
export function banner(
  { appUrl, brand, databaseUrl, redisUrl, smtpUrl, s3, dataDir }: Config,
  { providers, embeddedProvider }: Providers,
): string {
  const embedded = [
    !databaseUrl && 'database',
    !redisUrl && 'key-value store',
    !smtpUrl && 'mail',
    !s3 && 'object storage',
    embeddedProvider && 'identity provider',
  ].filter(Boolean);
  const lines = [
    ['Account service', appUrl],
    ...(brand.name === undefined ? [] : [['Shown as', brand.name]]),
    ['API description', `${appUrl}/openapi.json`],
    ['Try it', `${appUrl}/docs`],
    ...providers.map((name) => ['Provider login', `${appUrl}/auth/${name}`]),
    ...(smtpUrl ? [] : [['Mailbox', `${appUrl}/dev/mail`]]),
    ['Embedded parts', embedded.length > 0 ? `${embedded.join(', ')} (in ${dataDir})` : 'none'],
  ];
  return `\n${lines.map(([label, value]) => `  ${label?.padEnd(17)}${value}`).join('\n')}\n\n`;
}
