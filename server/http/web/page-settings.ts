import type { Accounts } from '../../accounts/index.ts';
import type { Config } from '../../config/index.ts';

/** The settings of the account pages that depend on the configuration and the parts. */
export const pageSettings = (
  {
    appUrl,
    registration,
    emailCodes,
    impersonation,
    smtpUrl,
    brand,
    origins,
    acceptsLoopbackOrigins,
    passwordStrength,
    termsVersion,
    profileFields,
  }: Config,
  { providers, lifecycle }: Pick<Accounts, 'providers' | 'lifecycle'>,
) => ({
  appUrl,
  brand,
  origins: [...origins],
  acceptsLoopbackOrigins,
  providers: providers.names,
  reauthenticatingProviders: providers.reauthenticating,
  registration,
  emailCodes,
  impersonation: impersonation !== 'off',
  restorableDays: lifecycle.deletion.restorableDays,
  passwordStrength: passwordStrength || undefined,
  termsVersion,
  // Names of fields that users may not read are not told.
  profileFields: profileFields.length > 0 ? profileFields.filter(({ read }) => read !== 'services') : undefined,
  mailbox: smtpUrl ? undefined : '/dev/mail',
});
