import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { TextField } from '../../form/fields.tsx';
import { Button, Form, Notice } from '../../form/form.tsx';
import { useForm } from '../../form/use-form.ts';
import { date } from '../../language/format.ts';
import { text } from '../../language/texts.ts';
import { MailboxHint } from '../../page.tsx';
import { dropDraft } from '../../session/draft.ts';
import { settings } from '../../settings.ts';
import { useRecentCredential } from '../dashboard/security/recent-credential.tsx';
import { sessionEnded } from '../session-ended.tsx';

const DRAFT = 'invitation';
const empty = { email: '' };

/** Mails an invitation. If registration is closed, there is no form. */
export function Invite({ onInvited }: { onInvited(): void }) {
  const [message, setMessage] = useState('');
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const { field, isBusy, form } = useForm({
    initial: empty,
    required: { email: text('admin.invite.missing') },
    draft: { key: DRAFT, names: ['email'] },
    send(typed) {
      setMessage('');
      return withRecentCredential(
        () => api.users.invite.mutate(typed),
        ({ invitation: { email, expiresAt } }) => {
          dropDraft(DRAFT);
          setMessage(text('admin.invite.done', { email, date: date(expiresAt) }));
          onInvited();
          return empty;
        },
      );
    },
    explain: sessionEnded,
  });
  if (settings.registration.mode === 'closed') return null;
  return (
    <section class="card" aria-labelledby="invite">
      <h2 id="invite">{text('admin.invite.title')}</h2>
      <Form {...form}>
        <TextField
          field={field('email')}
          label={text('common.email')}
          type="email"
          autocomplete="off"
          hint={text('admin.invite.hint')}
        />
        <Button kind="secondary" isBusy={isBusy} isAsking={isAsking} busy={text('common.sending')}>
          {text('admin.invite.send')}
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
