import type { WebhooksListOutput, WebhooksRotateSecretOutput } from 'account-client';
import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { Button } from '../../form/form.tsx';
import { useAction } from '../../form/use-action.ts';
import { dateTime } from '../../language/format.ts';
import { text } from '../../language/texts.ts';
import { Secret } from '../admin/secret.tsx';
import { Outcome } from '../dashboard/outcome.tsx';
import { useRecentCredential } from '../dashboard/security/recent-credential.tsx';
import { Deliveries } from './deliveries.tsx';
import { errorText } from './error-text.ts';

type Listed = WebhooksListOutput['data'][number];

interface Props {
  webhook: Listed;
  onChanged(): Promise<void>;
  onRemoved(): Promise<void>;
}

/** A receiver: its health, what can be done with it, and its deliveries. */
export function WebhookEntry({ webhook, onChanged, onRemoved }: Props) {
  const { id, url, types, include, description, enabled } = webhook;
  const [rotated, setRotated] = useState<WebhooksRotateSecretOutput>();
  const [isOpen, setOpen] = useState(false);
  const { busy, act, ...outcome } = useAction();
  const { withRecentCredential, question, isAsking } = useRecentCredential();

  const test = () =>
    withRecentCredential(
      () => api.webhooks.test.mutate({ id }),
      ({ success, status, error }) =>
        status === undefined
          ? errorText(error)
          : text(success ? 'webhooks.act.accepted' : 'webhooks.act.refused', { status: String(status) }),
    );
  const toggle = () =>
    withRecentCredential(
      () => api.webhooks.update.mutate({ id, enabled: !enabled }),
      async () => {
        await onChanged();
        return undefined;
      },
    );
  const rotate = () =>
    withRecentCredential(
      () => api.webhooks.rotateSecret.mutate({ id }),
      (secret) => {
        setRotated(secret);
        return undefined;
      },
    );
  const remove = () =>
    withRecentCredential(
      () => api.webhooks.delete.mutate({ id }),
      async () => {
        await onRemoved();
        return undefined;
      },
    );

  const button = (name: string, label: string, work: () => Promise<string | undefined>) => (
    <Button
      kind={name === 'remove' ? 'danger' : 'secondary'}
      isBusy={busy === name}
      isAsking={isAsking}
      busy={text(name === 'test' ? 'webhooks.act.testing' : 'webhooks.act.busy')}
      describedBy={`webhook-${id}`}
      onClick={() => void act(name, work)}
    >
      {label}
    </Button>
  );

  const what = types.includes('*') ? text('webhooks.everyType') : types.join(', ');
  return (
    <div class="stack">
      <div id={`webhook-${id}`}>
        <strong>{url}</strong>
        {description && <p>{description}</p>}
        <p class="hint">{[what, ...(include.includes('user') ? [text('webhooks.withUser')] : [])].join(', ')}</p>
        <p class="health" data-health={healthOf(webhook)}>
          {healthText(webhook)}
        </p>
      </div>
      <div class="choices">
        {button('test', text('webhooks.act.test'), test)}
        {button('toggle', text(enabled ? 'webhooks.act.disable' : 'webhooks.act.enable'), toggle)}
        {button('rotate', text('webhooks.act.rotate'), rotate)}
        {button('remove', text('webhooks.act.remove'), remove)}
      </div>
      {question}
      <Outcome {...outcome} />
      {rotated && (
        <Secret secret={rotated.secret} purpose={text('webhooks.secret')} formerUntil={dateTime(rotated.formerUntil)} />
      )}
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{text('webhooks.deliveries.show')}</summary>
        {isOpen && <Deliveries webhookId={id} />}
      </details>
    </div>
  );
}

const healthOf = ({ enabled, failingSince }: Listed) => {
  if (!enabled) return 'disabled';
  return failingSince === null ? 'ok' : 'failing';
};

function healthText({ disabledBy, failingSince }: Listed): string {
  if (disabledBy === 'administrator') return text('webhooks.health.administrator');
  if (disabledBy !== null) return text(disabledBy === 'gone' ? 'webhooks.health.gone' : 'webhooks.health.failed');
  return failingSince === null
    ? text('webhooks.health.ok')
    : text('webhooks.health.failing', { date: dateTime(failingSince) });
}
