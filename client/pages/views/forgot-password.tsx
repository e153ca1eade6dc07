import { useState } from 'preact/hooks';
import { pagePaths } from '../../../server/page-paths.ts';
import { api } from '../api.ts';
import { beforeLogin } from '../draft.ts';
import { TextField } from '../form/fields.tsx';
import { Button, Form } from '../form/form.tsx';
import { useForm } from '../form/use-form.ts';
import { MailboxHint, Page } from '../page.tsx';

export function ForgotPassword() {
  const [message, setMessage] = useState('');
  const { field, isBusy, form } = useForm({
    initial: { email: '' },
    required: { email: 'Please enter your email' },
    draft: { key: beforeLogin, names: ['email'] },
    async send(values) {
      setMessage((await api.auth.forgotPassword.mutate(values)).message);
      return undefined;
    },
  });
  if (message) {
    return (
      <Page title="Check your inbox" isNews>
        <p>{message} It works for one hour.</p>
        <MailboxHint />
        <p class="aside">
          <a href={pagePaths.logIn}>Back to the login</a>
        </p>
      </Page>
    );
  }
  return (
    <Page title="Forgot your password?">
      <p>Tell us your email, and we send you a link to set a new one.</p>
      <Form {...form}>
        <TextField field={field('email')} label="Email" type="email" autocomplete="username" />
        <Button isBusy={isBusy} busy="Sending …">
          Send reset link
        </Button>
      </Form>
      <p class="aside">
        <a href={pagePaths.logIn}>Back to the login</a>
      </p>
    </Page>
  );
}
