import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api } from '../../api.ts';
import { PasswordField, TextField } from '../../form/fields.tsx';
import { Button, Form } from '../../form/form.tsx';
import { unmetRules } from '../../form/password-rules.ts';
import { text } from '../../language/texts.ts';
import { Page } from '../../page.tsx';
import { mailedLink, useMailedLink } from '../../session/mailed-link.ts';
import { rememberTarget } from '../../session/way-back.ts';
import { LinkOutcome } from './link-outcome.tsx';

/** The page behind the mailed link. */
export function ResetPassword() {
  const email = mailedLink().get('email') ?? '';
  const { outcome, isRefused, field, isBusy, form } = useMailedLink({
    initial: { email, password: '' },
    required: { password: text('entry.required.newPassword') },
    check: ({ password }) => unmetRules({ password }),
    async send(token, { password }) {
      const changed = await api.auth.resetPassword.mutate({ token, email, password });
      rememberTarget(changed.returnTo);
      return changed;
    },
  });
  if (outcome)
    return (
      <LinkOutcome
        title={text('entry.resetPassword.changed')}
        explanation={text('entry.resetPassword.logInAgain')}
        next={{ href: pagePaths.logIn, label: text('entry.logIn.action') }}
      />
    );
  if (isRefused || !email)
    return (
      <LinkOutcome
        explanation={text('entry.resetPassword.refused')}
        next={{ href: pagePaths.forgotPassword, label: text('entry.newLink') }}
      />
    );
  return (
    <Page title={text('entry.resetPassword.title')}>
      <Form {...form}>
        {/* For password managers: the account that the password belongs to. */}
        <TextField field={field('email')} label={text('common.email')} type="email" autocomplete="username" readonly />
        <PasswordField
          field={field('password')}
          label={text('entry.resetPassword.newPassword')}
          isNew
          about={[email]}
        />
        <Button isBusy={isBusy} busy={text('entry.resetPassword.busy')}>
          {text('entry.resetPassword.submit')}
        </Button>
      </Form>
    </Page>
  );
}
