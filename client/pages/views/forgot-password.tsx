import { useState } from 'preact/hooks';
import { pagePaths } from '../../../server/shared/page-paths.ts';
import { api } from '../api.ts';
import { wrongAddress } from '../form/address-rule.ts';
import { TextField } from '../form/fields.tsx';
import { Button, Form } from '../form/form.tsx';
import { useForm } from '../form/use-form.ts';
import { text } from '../language/texts.ts';
import { MailboxHint, Page } from '../page.tsx';
import { beforeLogin } from '../session/draft.ts';
import { wayBack } from '../session/way-back.ts';

export function ForgotPassword() {
  const [isSent, setSent] = useState(false);
  const { field, isBusy, form } = useForm({
    initial: { email: '' },
    required: { email: text('entry.required.email') },
    isFocused: true,
    // The service accepts any text, so as not to reveal accounts.
    check: wrongAddress,
    draft: { key: beforeLogin, names: ['email'] },
    async send(values) {
      await api.auth.forgotPassword.mutate({ ...values, returnTo: wayBack() });
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
