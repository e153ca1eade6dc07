import { pagePaths } from '../../../server/page-paths.ts';
import { api } from '../api.ts';
import { PasswordField, TextField } from '../form/fields.tsx';
import { Button, Form } from '../form/form.tsx';
import { unmetRules } from '../form/password-rules.ts';
import { mailedLink, useMailedLink } from '../mailed-link.ts';
import { Page } from '../page.tsx';
import { text } from '../texts.ts';
import { LinkRefused } from './link-refused.tsx';

/** The page that the mailed link opens. */
export function ResetPassword() {
  const email = mailedLink().get('email') ?? '';
  const { outcome, isRefused, field, isBusy, form } = useMailedLink({
    initial: { email, password: '' },
    required: { password: text('entry.required.newPassword') },
    check: ({ password }) => unmetRules({ password }),
    send: (token, { password }) => api.auth.resetPassword.mutate({ token, email, password }),
  });
  if (outcome) return <Changed />;
  if (isRefused || !email) return <Refused />;
  return (
    <Page title={text('entry.resetPassword.title')}>
      <Form {...form}>
        {/* For password managers: the account that the password belongs to. */}
        <TextField field={field('email')} label={text('common.email')} type="email" autocomplete="username" readonly />
        <PasswordField field={field('password')} label={text('entry.resetPassword.newPassword')} isNew />
        <Button isBusy={isBusy} busy={text('entry.resetPassword.busy')}>
          {text('entry.resetPassword.submit')}
        </Button>
      </Form>
    </Page>
  );
}

function Changed() {
  return (
    <Page title={text('entry.resetPassword.changed')} isNews>
      <p>{text('entry.resetPassword.logInAgain')}</p>
      <p>
        <a class="primary button" href={pagePaths.logIn}>
          {text('entry.logIn.action')}
        </a>
      </p>
    </Page>
  );
}

function Refused() {
  return (
    <LinkRefused>
      <p>{text('entry.resetPassword.refused')}</p>
      <p>
        <a class="primary button" href={pagePaths.forgotPassword}>
          {text('entry.newLink')}
        </a>
      </p>
    </LinkRefused>
  );
}
