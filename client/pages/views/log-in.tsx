import type { ComponentChildren } from 'preact';
import { pagePaths } from '../../../server/page-paths.ts';
import { api, type Refusal } from '../api.ts';
import { beforeLogin } from '../draft.ts';
import { enter } from '../enter.ts';
import { PasswordField, TextField } from '../form/fields.tsx';
import { Button, Form } from '../form/form.tsx';
import { type Problem, useForm } from '../form/use-form.ts';
import { Page } from '../page.tsx';
import { hasPasskeys } from '../passkeys.ts';
import { isOpenToNew, RegistrationClosed } from '../registration.tsx';
import { Arrival } from './arrival.tsx';
import { PasskeyLogin } from './passkey-login.tsx';
import { ProviderLinks } from './provider-links.tsx';
import { Restore, RestoreThroughProvider } from './restore.tsx';

export function LogIn() {
  const { values, field, isBusy, form } = useForm({
    initial: { email: '', password: '' },
    required: { email: 'Please enter your email', password: 'Please enter your password' },
    draft: { key: beforeLogin, names: ['email'] },
    async send({ email, password }) {
      await enter(() => api.auth.login.mutate({ email, password }));
      return undefined;
    },
    explain: (refusal) =>
      refusal.code === 'ACCOUNT_DELETED'
        ? { message: <Restore email={values.email} password={values.password} /> }
        : explain(refusal),
  });
  return (
    <Page title="Log in">
      <Arrival errors={errors} notices={notices} />
      <ProviderLinks>{hasPasskeys && <PasskeyLogin />}</ProviderLinks>
      <Form {...form}>
        <TextField field={field('email')} label="Email" type="email" autocomplete={fieldOfLogin} />
        <PasswordField field={field('password')} label="Password" isNew={false} />
        <Button isBusy={isBusy} busy="Logging in …">
          Log in
        </Button>
      </Form>
      <p class="aside">
        <a href={pagePaths.forgotPassword}>Forgot your password?</a>
      </p>
      {isOpenToNew && (
        <p class="aside">
          New here? <a href={pagePaths.register}>Create an account</a>
        </p>
      )}
    </Page>
  );
}

/** Passkeys are suggested in this field. */
const fieldOfLogin = hasPasskeys ? 'username webauthn' : 'username';

const blockedSentence = 'This account is blocked. Ask the people who run this site about it.';

function explain({ code, message }: Refusal): Problem<'email' | 'password'> | undefined {
  if (code === 'INVALID_CREDENTIALS') return { field: 'password', message };
  if (code === 'ACCOUNT_BLOCKED') return { message: blockedSentence };
  if (code !== 'EMAIL_NOT_VERIFIED') return undefined;
  return {
    message: (
      <>
        {message}. The link is in our mail to you. <a href={pagePaths.verifyEmail}>Send it again</a>
      </>
    ),
  };
}

/** Why the browser was sent here: `error` is the outcome at an identity provider, `notice` that of a page of ours. */
const errors = new Map<string | null, ComponentChildren>([
  ['cancelled', 'You cancelled the login. You can try again, or log in with your email.'],
  [
    'email_unverified',
    'Your email is not verified at the provider, and an account here uses it. Log in with your password instead.',
  ],
  [
    'identity_not_linked',
    'An account with your email asks for a second factor. Log in as you do otherwise, and link this login on the Security page.',
  ],
  [
    'second_factor_ended',
    'This login has ended: more than ten minutes have passed, or too many codes were wrong. Please log in again.',
  ],
  ['session_ended', 'Your session has ended. Please log in again.'],
  ['account_deleted', <RestoreThroughProvider key="restore" />],
  ['account_blocked', blockedSentence],
  ['account_removed', 'There is no account to restore: it has been removed, or belongs to another login.'],
  ['registration_closed', <RegistrationClosed key="registration" />],
  ['oauth_failed', 'The login through the provider did not work. Please try again, or log in with your email.'],
]);
const notices = new Map<string | null, ComponentChildren>([
  ['logged-out', 'You are logged out.'],
  ['logged-out-everywhere', 'You are logged out on all devices.'],
]);
