import { useState } from 'preact/hooks';
import { api, type Profile } from '../../api.ts';
import { dropDraft } from '../../draft.ts';
import { TextField } from '../../form/fields.tsx';
import { Button, Form, Notice } from '../../form/form.tsx';
import { useForm } from '../../form/use-form.ts';
import { MailboxHint } from '../../page.tsx';
import { markup, text } from '../../texts.ts';
import { sessionEnded } from '../session-ended.tsx';
import { useRecentCredential } from './recent-credential.tsx';

/** Asks for another email. It changes only once the link in the mail to it is used. */
export function EmailCard({ profile: { id, email } }: { profile: Profile }) {
  const [isAsked, setAsked] = useState(false);
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const draft = `email:${id}`;
  const { field, isBusy, form } = useForm({
    initial: { email: '' },
    required: { email: text('dashboard.email.newMissing') },
    draft: { key: draft, names: ['email'] },
    async send(values) {
      setAsked(false);
      await withRecentCredential(
        () => api.account.changeEmail.mutate(values),
        () => {
          dropDraft(draft);
          setAsked(true);
        },
      );
      return undefined;
    },
    explain: sessionEnded,
  });
  return (
    <section class="card" aria-labelledby="email-card">
      <h2 id="email-card">{text('common.email')}</h2>
      <p>{markup('dashboard.email.current', { email: <strong>{email}</strong> })}</p>
      <Form {...form}>
        <TextField field={field('email')} label={text('dashboard.email.new')} type="email" autocomplete="email" />
        <Button isBusy={isBusy} isAsking={isAsking} busy={text('common.sending')}>
          {text('dashboard.email.change')}
        </Button>
      </Form>
      {question}
      {isAsked && !isBusy && (
        <>
          <Notice>{text('dashboard.email.asked')}</Notice>
          <MailboxHint />
        </>
      )}
    </section>
  );
}
