/** Callers of these paths can read every mail and log in as any user. */
export const devPaths = [
  '/dev',
  '/dev/mail',
  '/DEV/mail',
  '/Dev/Mail/any',
  '/%64ev/mail',
  '/dev/mail/any',
  '/dev/idp',
  '/dev/idp/.well-known/openid-configuration',
];
