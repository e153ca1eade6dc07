import { useState } from 'preact/hooks';
import { api, type Profile } from '../../../api.ts';
import { TextField } from '../../../form/fields.tsx';
import { Button, Form, Notice } from '../../../form/form.tsx';
import { useForm } from '../../../form/use-form.ts';
import { markup, text } from '../../../language/texts.ts';
import { MailboxHint } from '../../../page.tsx';
import { dropDraft } from '../../../session/draft.ts';
import { sessionEnded } from '../../session-ended.tsx';
import { useRecentCredential } from './recent-credential.tsx';

/** Requests an email change, which takes effect only by the mailed link. */
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
