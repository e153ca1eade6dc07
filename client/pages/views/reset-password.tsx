import { useState } from 'preact/hooks';
import { pagePaths } from '../../../server/page-paths.ts';
import { api } from '../api.ts';
import { PasswordField, TextField } from '../form/fields.tsx';
import { Button, Form } from '../form/form.tsx';
import { unmetRules } from '../form/password-rules.ts';
import { useForm } from '../form/use-form.ts';
import { mailedLink } from '../mailed-link.ts';
import { Page } from '../page.tsx';

/** The page that the mailed link opens. */
export function ResetPassword() {
  const query = mailedLink();
  const token = query.get('token') ?? '';
  const email = query.get('email') ?? '';
  const [step, setStep] = useState<'ask' | 'done' | 'refused'>(token && email ? 'ask' : 'refused');
  const { field, isBusy, form } = useForm({
    initial: { email, password: '' },
    required: { password: 'Please choose a password' },
    check: ({ password }) => unmetRules({ password }),
    async send({ password }) {
      await api.auth.resetPassword.mutate({ token, email, password });
      setStep('done');
      return undefined;
    },
    explain({ code, message }) {
      if (code === 'INVALID_TOKEN') setStep('refused');
      return code === 'INVALID_TOKEN' ? { message } : undefined;
    },
  });
  if (step === 'done') return <Changed />;
  if (step === 'refused') return <Refused />;
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
    <Page title="This link does not work" isNews>
      <p>It is incomplete, older than an hour, has been used, or a newer one took its place.</p>
      <p>
        <a class="primary button" href={pagePaths.forgotPassword}>
          Ask for a new link
        </a>
      </p>
    </Page>
  );
}
