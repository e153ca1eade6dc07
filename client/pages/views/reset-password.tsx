import { pagePaths } from '../../../server/page-paths.ts';
import { api } from '../api.ts';
import { PasswordField, TextField } from '../form/fields.tsx';
import { Button, Form } from '../form/form.tsx';
import { unmetRules } from '../form/password-rules.ts';
import { mailedLink, useMailedLink } from '../mailed-link.ts';
import { Page } from '../page.tsx';
import { LinkRefused } from './link-refused.tsx';

/** The page that the mailed link opens. */
export function ResetPassword() {
  const email = mailedLink().get('email') ?? '';
  const { outcome, isRefused, field, isBusy, form } = useMailedLink({
    initial: { email, password: '' },
    required: { password: 'Please choose a password' },
    check: ({ password }) => unmetRules({ password }),
    send: (token, { password }) => api.auth.resetPassword.mutate({ token, email, password }),
  });
  if (outcome) return <Changed />;
  if (isRefused || !email) return <Refused />;
  return (
    <Page title="Set a new password">
      <Form {...form}>
        {/* For password managers: the account that the password belongs to. */}
        <TextField field={field('email')} label="Email" type="email" autocomplete="username" readonly />
        <PasswordField field={field('password')} label="New password" isNew />
        <Button isBusy={isBusy} busy="Setting new password …">
          Set new password
        </Button>
      </Form>
    </Page>
  );
}

function Changed() {
  return (
    <Page title="Your password is changed" isNews>
      <p>Every device was logged out. You can log in with your new password now.</p>
      <p>
        <a class="primary button" href={pagePaths.logIn}>
          Log in
        </a>
      </p>
    </Page>
  );
}

function Refused() {
  return (
    <LinkRefused>
      <p>It is incomplete, older than an hour, has been used, or a newer one took its place.</p>
      <p>
        <a class="primary button" href={pagePaths.forgotPassword}>
          Ask for a new link
        </a>
      </p>
    </LinkRefused>
  );
}
