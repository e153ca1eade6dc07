import type { ComponentChildren } from 'preact';
import { pagePaths } from '../../../server/page-paths.ts';
import { api, type Refusal } from '../api.ts';
import { beforeLogin } from '../draft.ts';
import { PasswordField, TextField } from '../form/fields.tsx';
import { Alert, Button, Form, Notice } from '../form/form.tsx';
import { type Problem, useForm } from '../form/use-form.ts';
import { Page } from '../page.tsx';
import { ProviderLinks } from './provider-links.tsx';

export function LogIn() {
  const { field, isBusy, form } = useForm({
    initial: { email: '', password: '' },
    required: { email: 'Please enter your email', password: 'Please enter your password' },
    draft: { key: beforeLogin, names: ['email'] },
    async send({ email, password }) {
      await api.auth.login.mutate({ email, password });
      location.assign(pagePaths.dashboard);
      return undefined;
    },
    explain,
  });
  return (
    <Page title="Log in">
      <Arrival />
      <ProviderLinks />
      <Form {...form}>
        <TextField field={field('email')} label="Email" type="email" autocomplete="username" />
        <PasswordField field={field('password')} label="Password" isNew={false} />
        <Button isBusy={isBusy} busy="Logging in …">
          Log in
        </Button>
      </Form>
      <p class="aside">
        <a href={pagePaths.forgotPassword}>Forgot your password?</a>
      </p>
      <p class="aside">
        New here? <a href={pagePaths.register}>Create an account</a>
      </p>
    </Page>
  );
}

function explain({ code, message }: Refusal): Problem<'email' | 'password'> | undefined {
  if (code === 'INVALID_CREDENTIALS') return { field: 'password', message };
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
  ['oauth_failed', 'The login through the provider did not work. Please try again, or log in with your email.'],
]);
const notices = new Map<string | null, ComponentChildren>([
  ['logged-out', 'You are logged out.'],
  ['logged-out-everywhere', 'You are logged out on all devices.'],
]);

function Arrival() {
  const query = new URLSearchParams(location.search);
  const error = errors.get(query.get('error'));
  const notice = notices.get(query.get('notice'));
  return (
    <>
      {error && <Alert>{error}</Alert>}
      {notice && <Notice>{notice}</Notice>}
    </>
  );
}
