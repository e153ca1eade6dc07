import type { WebhooksDeliveriesOutput } from 'account-client';
import { api } from '../../api.ts';
import { Button } from '../../form/form.tsx';
import { useAction } from '../../form/use-action.ts';
import { dateTime } from '../../language/format.ts';
import { text } from '../../language/texts.ts';
import { usePages } from '../../use-pages.ts';
import { Outcome } from '../dashboard/outcome.tsx';
import { useRecentCredential } from '../dashboard/security/recent-credential.tsx';
import { ShowMore } from '../show-more.tsx';
import { errorText } from './error-text.ts';

type Delivery = WebhooksDeliveriesOutput['data'][number];

const A_PAGE = 20;

/** The deliveries to a receiver with their responses, newest first. */
export function Deliveries({ webhookId }: { webhookId: string }) {
  const { items, ...pages } = usePages((cursor) =>
    api.webhooks.deliveries.query({ id: webhookId, limit: A_PAGE, ...(cursor && { cursor }) }),
  );
  return (
    <div class="stack">
      <h3>{text('webhooks.deliveries.title')}</h3>
      {items.length === 0 && !pages.hasMore && <p>{text('webhooks.deliveries.none')}</p>}
      <ul class="entries">
        {items.map((delivery) => (
          <li key={delivery.id}>
            <Entry webhookId={webhookId} delivery={delivery} />
          </li>
        ))}
      </ul>
      <ShowMore {...pages} />
    </div>
  );
}

function Entry({ webhookId, delivery }: { webhookId: string; delivery: Delivery }) {
  const { id, type, attempts, status, error, answer, createdAt } = delivery;
  const { busy, act, ...outcome } = useAction();
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const redeliver = () =>
    act('redeliver', () =>
      withRecentCredential(
        () => api.webhooks.redeliver.mutate({ id: webhookId, deliveryId: id }),
        () => text('webhooks.deliveries.queued'),
      ),
    );
  const response = error ? errorText(error) : status === null ? '' : `HTTP ${status}`;
  return (
    <>
      <div id={`delivery-${id}`}>
        <strong>{type}</strong>
        <p class="hint">
          {[dateTime(createdAt), stateOf(delivery), text('webhooks.deliveries.tries', { count: attempts }), response]
            .filter(Boolean)
            .join(', ')}
        </p>
        {answer && <code>{answer}</code>}
      </div>
      <Button
        kind="secondary"
        isBusy={busy !== ''}
        isAsking={isAsking}
        busy={text('webhooks.act.busy')}
        describedBy={`delivery-${id}`}
        onClick={() => void redeliver()}
      >
        {text('webhooks.deliveries.again')}
      </Button>
      {question}
      <Outcome {...outcome} />
    </>
  );
}

const stateOf = ({ state, nextTryAt }: Delivery): string =>
  state === 'waiting'
    ? text('webhooks.deliveries.waiting', { date: nextTryAt === null ? '' : dateTime(nextTryAt) })
    : text(`webhooks.deliveries.${state}`);
