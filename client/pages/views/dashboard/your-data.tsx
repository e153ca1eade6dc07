import { useState } from 'preact/hooks';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api, type Refusal, refusalIn } from '../../api.ts';
import { downloadExport } from '../../download-export.ts';
import { TextField } from '../../form/fields.tsx';
import { Alert, Button, Form, Notice } from '../../form/form.tsx';
import { sentenceFor, useForm } from '../../form/use-form.ts';
import { date, number } from '../../language/format.ts';
import { markup, text } from '../../language/texts.ts';
import { Page } from '../../page.tsx';
import { dropDraft } from '../../session/draft.ts';
import { settings } from '../../settings.ts';
import { sessionEnded } from '../session-ended.tsx';
import { Consents } from './consents.tsx';
import { DashboardPage } from './dashboard-page.tsx';
import { useRecentCredential } from './security/recent-credential.tsx';

/** The data stored about the user: export and deletion. */
export function YourData() {
  const [removedAfter, setRemovedAfter] = useState<number>();
  if (removedAfter !== undefined) return <Farewell removedAfter={removedAfter} />;
  return (
    <DashboardPage title={text('dashboard.parts.data')}>
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
      <h2 id="export">{text('dashboard.export.title')}</h2>
      <div class="stack">
        {refusal && <Alert>{sessionEnded(refusal)?.message ?? sentenceFor(refusal)}</Alert>}
        {isDone && <Notice>{text('dashboard.export.saved')}</Notice>}
        <p>{text('dashboard.export.explanation')}</p>
        <Button
          kind="secondary"
          isBusy={isBusy}
          isAsking={isAsking}
          busy={text('dashboard.export.downloading')}
          onClick={() => void load()}
        >
          {text('dashboard.export.download')}
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
      confirmation.trim().toLowerCase() === email
        ? {}
        : { confirmation: text('dashboard.deletion.mistyped', { email }) },
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
    <section class="card final" aria-labelledby="deletion">
      <h2 id="deletion">{text('dashboard.deletion.title')}</h2>
      <p>{text('dashboard.deletion.explanation', { days: number(settings.restorableDays) })}</p>
      <Form {...form}>
        <TextField
          field={field('confirmation')}
          label={text('dashboard.deletion.confirmation')}
          type="email"
          autocomplete="off"
          hint={text('dashboard.deletion.hint', { email })}
        />
        <Button kind="danger" isBusy={isBusy} isAsking={isAsking} busy={text('dashboard.deletion.deleting')}>
          {text('dashboard.deletion.delete')}
        </Button>
      </Form>
      {question}
    </section>
  );
}

/** Replaces the page, because the session has ended. */
function Farewell({ removedAfter }: { removedAfter: number }) {
  return (
    <Page title={text('dashboard.farewell.title')} isNews>
      <p>{markup('dashboard.farewell.explanation', { date: <strong>{date(removedAfter)}</strong> })}</p>
      <a class="secondary button" href={pagePaths.logIn}>
        {text('dashboard.farewell.logIn')}
      </a>
    </Page>
  );
}
