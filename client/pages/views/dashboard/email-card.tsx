import { useState } from 'preact/hooks';
import { api, type Profile } from '../../api.ts';
import { dropDraft } from '../../draft.ts';
import { TextField } from '../../form/fields.tsx';
import { Button, Form, Notice } from '../../form/form.tsx';
import { useForm } from '../../form/use-form.ts';
import { MailboxHint } from '../../page.tsx';
import { sessionEnded } from '../session-ended.tsx';
import { useRecentCredential } from './recent-credential.tsx';

/** Asks for another email. It changes only once the link in the mail to it is used. */
export function EmailCard({ profile: { id, email } }: { profile: Profile }) {
  const [message, setMessage] = useState('');
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const draft = `email:${id}`;
  const { field, isBusy, form } = useForm({
    initial: { email: '' },
    required: { email: 'Please enter your new email' },
    draft: { key: draft, names: ['email'] },
    async send(values) {
      setMessage('');
      await withRecentCredential(
        () => api.account.changeEmail.mutate(values),
        (done) => {
          dropDraft(draft);
          setMessage(done.message);
        },
      );
      return undefined;
    },
    explain: sessionEnded,
  });
  return (
    <section class="card" aria-labelledby="email-card">
      <h2 id="email-card">Email</h2>
      <p>
        Your email is <strong>{email}</strong>.
      </p>
      <Form {...form}>
        <TextField field={field('email')} label="New email" type="email" autocomplete="email" />
        <Button isBusy={isBusy} isAsking={isAsking} busy="Sending …">
          Change email
        </Button>
      </Form>
      {question}
      {message && !isBusy && (
        <>
          <Notice>{message}</Notice>
          <MailboxHint />
        </>
      )}
    </section>
  );
}
