import { ConfigError, parseConfig } from '../../../server/config/index.ts';

/** A right environment of production. */
export const production = {
  NODE_ENV: 'production',
  APP_URL: 'https://accounts.example.com/',
  APP_SECRET: 'q7Jm2Xw9Lr4Tz8Vb1Nc6Kd3Hf5Gs0PyA',
  DATABASE_URL: 'mysql://root@127.0.0.1/accounts',
  REDIS_URL: 'redis://127.0.0.1',
  SMTP_URL: 'smtp://127.0.0.1',
  MAIL_FROM: 'Accounts <no-reply@example.com>',
  S3_ENDPOINT: 'https://s3.example.com/',
  S3_BUCKET: 'accounts',
  S3_ACCESS_KEY: 'key',
  S3_SECRET_KEY: 'secret',
};

/** The error of a start with this environment; empty if it would start. */
export function problemsOf(environment: Record<string, string>): string {
  try {
    parseConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
}
