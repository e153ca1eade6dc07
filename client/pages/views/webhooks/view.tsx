import type { WebhooksListOutput } from 'account-client';
import { useRef, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { Notice } from '../../form/form.tsx';
import { text } from '../../language/texts.ts';
import { AdminPage } from '../admin/admin-page.tsx';
import { AddWebhook } from './add.tsx';
import { WebhookEntry } from './webhook.tsx';

/** The receivers of events. */
export function Webhooks() {
  return (
    <AdminPage title={() => text('webhooks.title')} read={() => api.webhooks.list.query()}>
      {(list, reload) => <All list={list} reload={reload} />}
    </AdminPage>
  );
}

function All({ list: { data }, reload }: { list: WebhooksListOutput; reload(): Promise<void> }) {
  const [removed, setRemoved] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  return (
    <>
      <section class="card" aria-labelledby="webhooks">
        <h2 id="webhooks" class="unseen" ref={heading} tabIndex={-1}>
          {text('webhooks.title')}
        </h2>
        <div class="stack">
          <p>{text('webhooks.explanation')}</p>
          {removed && <Notice key={removed}>{text('webhooks.act.removed', { url: removed })}</Notice>}
          {data.length === 0 && <p>{text('webhooks.none')}</p>}
          <ul class="entries">
            {data.map((webhook) => (
              <li key={webhook.id}>
                <WebhookEntry
                  webhook={webhook}
                  onChanged={reload}
                  onRemoved={async () => {
                    await reload();
                    setRemoved(webhook.url);
                    // The button that was pressed is gone.
                    heading.current?.focus();
                  }}
                />
              </li>
            ))}
          </ul>
        </div>
      </section>
      <AddWebhook onAdded={reload} />
    </>
  );
}
