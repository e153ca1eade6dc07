import { useState } from 'preact/hooks';
import { pagePaths } from '../../../server/page-paths.ts';
import { api } from '../api.ts';
import { beforeLogin } from '../draft.ts';
import { TextField } from '../form/fields.tsx';
import { Button, Form } from '../form/form.tsx';
import { useForm } from '../form/use-form.ts';
import { MailboxHint, Page } from '../page.tsx';
import { text } from '../texts.ts';

export function ForgotPassword() {
  const [isSent, setSent] = useState(false);
  const { field, isBusy, form } = useForm({
    initial: { email: '' },
    required: { email: text('entry.required.email') },
    draft: { key: beforeLogin, names: ['email'] },
    async send(values) {
      await api.auth.forgotPassword.mutate(values);
      setSent(true);
      return undefined;
    },
  });
  if (isSent) {
    return (
      <Page title={text('entry.checkInbox')} isNews>
        <p>{text('entry.forgotPassword.sent')}</p>
        <MailboxHint />
        <p class="aside">
          <a href={pagePaths.logIn}>{text('entry.backToLogIn')}</a>
        </p>
      </Page>
    );
  }
  return (
    <Page title={text('entry.forgotPassword.title')}>
      <p>{text('entry.forgotPassword.explanation')}</p>
      <Form {...form}>
        <TextField field={field('email')} label={text('common.email')} type="email" autocomplete="username" />
        <Button isBusy={isBusy} busy={text('common.sending')}>
          {text('entry.forgotPassword.submit')}
        </Button>
      </Form>
      <p class="aside">
        <a href={pagePaths.logIn}>{text('entry.backToLogIn')}</a>
      </p>
    </Page>
  );
}
