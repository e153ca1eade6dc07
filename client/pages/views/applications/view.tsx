import type { ApplicationsListOutput } from 'account-client';
import { useRef, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { Notice } from '../../form/form.tsx';
import { text } from '../../language/texts.ts';
import { AdminPage } from '../admin/admin-page.tsx';
import { AddApplication } from './add.tsx';
import { ApplicationEntry } from './application.tsx';

/** The applications whose users log in here. */
export function AdminApplications() {
  return (
    <AdminPage title={() => text('apps.title')} read={() => api.applications.list.query()}>
      {(list, reload) => <All list={list} reload={reload} />}
    </AdminPage>
  );
}

function All({ list: { data }, reload }: { list: ApplicationsListOutput; reload(): Promise<void> }) {
  const [removed, setRemoved] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  return (
    <>
      <section class="card" aria-labelledby="applications">
        <h2 id="applications" class="unseen" ref={heading} tabIndex={-1}>
          {text('apps.title')}
        </h2>
        <div class="stack">
          <p>{text('apps.explanation')}</p>
          {removed && <Notice key={removed}>{text('apps.act.removed', { name: removed })}</Notice>}
          {data.length === 0 && <p>{text('apps.none')}</p>}
          <ul class="entries">
            {data.map((application) => (
              <li key={application.id}>
                <ApplicationEntry
                  application={application}
                  onChanged={reload}
                  onRemoved={async () => {
                    await reload();
                    setRemoved(application.name);
                    // The button that was pressed is gone.
                    heading.current?.focus();
                  }}
                />
              </li>
            ))}
          </ul>
        </div>
      </section>
      <AddApplication onAdded={reload} />
    </>
  );
}
