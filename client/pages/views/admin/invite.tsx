import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { dropDraft } from '../../draft.ts';
import { TextField } from '../../form/fields.tsx';
import { Button, Form, Notice } from '../../form/form.tsx';
import { useForm } from '../../form/use-form.ts';
import { date } from '../../in-readers-language.ts';
import { MailboxHint } from '../../page.tsx';
import { settings } from '../../settings.ts';
import { useRecentCredential } from '../dashboard/recent-credential.tsx';
import { sessionEnded } from '../session-ended.tsx';

const DRAFT = 'invitation';
const empty = { email: '' };

/** Mails an address the link to create an account. Where registration is closed, there is no form. */
export function Invite() {
  const [message, setMessage] = useState('');
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const { field, isBusy, form } = useForm({
    initial: empty,
    required: { email: 'Please enter an email' },
    draft: { key: DRAFT, names: ['email'] },
    send(typed) {
      setMessage('');
      return withRecentCredential(
        () => api.users.invite.mutate(typed),
        ({ invitation: { email, expiresAt } }) => {
          dropDraft(DRAFT);
          setMessage(`${email} is invited. The link in our mail works until ${date(expiresAt)}.`);
          return empty;
        },
      );
    },
    explain: sessionEnded,
  });
  if (settings.registration.mode === 'closed') return null;
  return (
    <section class="card" aria-labelledby="invite">
      <h2 id="invite">Invite</h2>
      <Form {...form}>
        <TextField
          field={field('email')}
          label="Email"
          type="email"
          autocomplete="off"
          hint="A link to create an account with this email is mailed there. It works once, for 7 days."
        />
        <Button kind="secondary" isBusy={isBusy} isAsking={isAsking} busy="Sending …">
          Send invitation
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
