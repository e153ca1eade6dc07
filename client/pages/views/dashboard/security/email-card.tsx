import { useState } from 'preact/hooks';
import { api, type Profile } from '../../../api.ts';
import { TextField } from '../../../form/fields.tsx';
import { Button, Form, Notice } from '../../../form/form.tsx';
import { useForm } from '../../../form/use-form.ts';
import { text } from '../../../language/texts.ts';
import { MailboxHint } from '../../../page.tsx';
import { dropDraft } from '../../../session/draft.ts';
import { sessionEnded } from '../../session-ended.tsx';
import { useRecentCredential } from './recent-credential.tsx';
import { Row } from './row.tsx';
import type { RowState } from './use-open-row.ts';

/** Requests an email change, which takes effect only by the mailed link. */
export function EmailCard({ row, profile: { id, email } }: { row: RowState; profile: Profile }) {
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
  /** A name of its own: `email` is the id of the row. */
  const own = { ...field('email'), name: 'new-email' };
  return (
    <Row row={row} icon="mail" title={text('common.email')} state={email} action={text('dashboard.security.change')}>
      <Form {...form}>
        <TextField field={own} label={text('dashboard.email.new')} type="email" autocomplete="email" />
        <Button isBusy={isBusy} isAsking={isAsking} busy={text('common.sending')}>
          {text('dashboard.email.change')}
        </Button>
      </Form>
      {question}
      {isAsked && !isBusy && (
        <>
          <Notice stays>{text('dashboard.email.asked')}</Notice>
          <MailboxHint />
        </>
      )}
    </Row>
  );
}
