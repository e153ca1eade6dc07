import { expect, test } from 'vitest';
import { parseConfig } from '../../../server/config/index.ts';
import { pageSettings } from '../../../server/http/web/page-settings.ts';
import type { ProfileField } from '../../../server/shared/profile-fields.ts';

/** What the account pages know of the configuration. */
const parts = {
  providers: { names: ['acme', 'work'], reauthenticating: ['work'] },
  lifecycle: { deletion: { restorableDays: 14 } },
} as unknown as Parameters<typeof pageSettings>[1];
const settingsOf = (env: Record<string, string> = {}) => pageSettings(parseConfig(env), parts);

test('by default nothing is optional, and mails are read in the embedded mailbox', () => {
  const { brand, origins } = parseConfig({});
  expect(settingsOf()).toEqual({
    appUrl: 'http://localhost:3000',
    brand,
    origins: [...origins],
    acceptsLoopbackOrigins: true,
    providers: ['acme', 'work'],
    reauthenticatingProviders: ['work'],
    registration: { mode: 'open', domains: [] },
    emailCodes: false,
    impersonation: false,
    restorableDays: 14,
    passwordStrength: undefined,
    termsVersion: undefined,
    profileFields: undefined,
    mailbox: '/dev/mail',
  });
});

test.each<[Record<string, string>, object]>([
  [{ IMPERSONATION: 'on' }, { impersonation: true }],
  [{ IMPERSONATION: 'quiet' }, { impersonation: true }],
  [{ PASSWORD_STRENGTH: '3' }, { passwordStrength: 3 }],
  [{ EMAIL_CODES: 'on' }, { emailCodes: true }],
  [{ SMTP_URL: 'smtp://mail.test', MAIL_FROM: 'a@example.test' }, { mailbox: undefined }],
  [{ TERMS_URL: 'https://example.test/terms', TERMS_VERSION: '2' }, { termsVersion: '2' }],
  [
    { REGISTRATION: 'domains', REGISTRATION_DOMAINS: 'example.test' },
    { registration: { mode: 'domains', domains: ['example.test'] } },
  ],
])('%o', (env, settings) => {
  expect(settingsOf(env)).toMatchObject(settings);
});

test('fields that users may not read are not told', () => {
  const field = (read: ProfileField['read']): ProfileField => ({
    name: read,
    type: 'text',
    labels: { en: '' },
    read,
    write: 'services',
    required: false,
    unique: false,
  });
  const namesOf = (...fields: ProfileField[]) =>
    pageSettings({ ...parseConfig({}), profileFields: fields }, parts).profileFields?.map(({ name }) => name);
  expect(namesOf(field('public'), field('owner'), field('services'))).toEqual(['public', 'owner']);
  expect(namesOf(field('services'))).toEqual([]);
});
