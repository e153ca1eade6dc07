import { useState } from 'preact/hooks';
import { pagePaths } from '../../../../server/page-paths.ts';
import { api, type Refusal, refusalIn } from '../../api.ts';
import { downloadExport } from '../../download-export.ts';
import { dropDraft } from '../../draft.ts';
import { TextField } from '../../form/fields.tsx';
import { Alert, Button, Form, Notice } from '../../form/form.tsx';
import { sentenceFor, useForm } from '../../form/use-form.ts';
import { date } from '../../in-readers-language.ts';
import { Page } from '../../page.tsx';
import { sessionEnded } from '../session-ended.tsx';
import { Consents } from './consents.tsx';
import { DashboardPage } from './dashboard-page.tsx';
import { useRecentCredential } from './recent-credential.tsx';

/** What is stored about the user: to take along, and to be deleted. */
export function YourData() {
  const [removedAfter, setRemovedAfter] = useState<number>();
  if (removedAfter !== undefined) return <Farewell removedAfter={removedAfter} />;
  return (
    <DashboardPage title="Your data">
      {({ id, email }) => (
        <>
          <Export />
          <Consents />
          <Deletion id={id} email={email} onDeleted={setRemovedAfter} />
        </>
      )}
    </DashboardPage>
  );
}

function Export() {
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<Refusal>();
  const [isDone, setDone] = useState(false);

  const load = async () => {
    setBusy(true);
    setDone(false);
    setRefusal(undefined);
    try {
      await withRecentCredential(downloadExport, () => setDone(true));
    } catch (error) {
      setRefusal(refusalIn(error));
    } finally {
      setBusy(false);
    }
  };

  return (
    <section class="card" aria-labelledby="export">
      <h2 id="export">Download</h2>
      <div class="stack">
        {refusal && <Alert>{sessionEnded(refusal)?.message ?? sentenceFor(refusal)}</Alert>}
        {isDone && <Notice>The file has been saved.</Notice>}
        <p>
          A file with everything that is stored about you: profile, logins, activity, the mails of the last week, and
          the addresses of your files.
        </p>
        <Button kind="secondary" isBusy={isBusy} isAsking={isAsking} busy="Downloading …" onClick={() => void load()}>
          Download your data
        </Button>
        {question}
      </div>
    </section>
  );
}

interface DeletionProps {
  id: string;
  email: string;
  onDeleted(removedAfter: number): void;
}

function Deletion({ id, email, onDeleted }: DeletionProps) {
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const { field, isBusy, form } = useForm({
    initial: { confirmation: '' },
    check: ({ confirmation }): { confirmation?: string } =>
      confirmation.trim().toLowerCase() === email ? {} : { confirmation: `Please type ${email}` },
    draft: { key: `deletion:${id}`, names: ['confirmation'] },
    async send() {
      await withRecentCredential(
        () => api.account.delete.mutate(),
        ({ removedAfter }) => {
          dropDraft();
          onDeleted(removedAfter);
        },
      );
      return undefined;
    },
    explain: sessionEnded,
  });
  return (
    <section class="card" aria-labelledby="deletion">
      <h2 id="deletion">Delete your account</h2>
      <p>
        Nobody sees your profile any more, and every device is logged out. You can come back for a while, and then
        everything is removed for good, your files too.
      </p>
      <Form {...form}>
        <TextField
          field={field('confirmation')}
          label="Your email, to confirm"
          type="email"
          autocomplete="off"
          hint={`Type ${email}`}
        />
        <Button kind="danger" isBusy={isBusy} isAsking={isAsking} busy="Deleting …">
          Delete account
        </Button>
      </Form>
      {question}
    </section>
  );
}

/** In place of the page: there is no session any more. */
function Farewell({ removedAfter }: { removedAfter: number }) {
  return (
    <Page title="Your account is deleted" isNews>
      <p>
        You can come back until <strong>{date(removedAfter)}</strong>: log in as ever, and choose to restore your
        account. After that everything that is stored about you is removed. A mail to you says the same.
      </p>
      <p>
        <a class="secondary button" href={pagePaths.logIn}>
          Log in
        </a>
      </p>
    </Page>
  );
}
