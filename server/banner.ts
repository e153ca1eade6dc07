import type { Config } from './config.ts';

/** What to know on the first day: where everything is, and which parts are stand-ins. */
export function banner(config: Config): string {
  const { appUrl, databaseUrl, redisUrl, smtpUrl, s3, dataDir } = config;
  const embedded = [
    !databaseUrl && 'database',
    !redisUrl && 'key-value store',
    !smtpUrl && 'mail',
    !s3 && 'object storage',
  ].filter(Boolean);
  const lines = [
    ['Account service', appUrl],
    ['API description', `${appUrl}/openapi.json`],
    ['Try it', `${appUrl}/docs`],
    ...(smtpUrl ? [] : [['Mailbox', `${appUrl}/dev/mail`]]),
    ['Embedded parts', embedded.length > 0 ? `${embedded.join(', ')} (in ${dataDir})` : 'none'],
  ];
  return `\n${lines.map(([label, value]) => `  ${label?.padEnd(17)}${value}`).join('\n')}\n\n`;
}
