import type { ApplicationsListOutput, ApplicationsRotateSecretOutput } from 'account-client';
import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { Button } from '../../form/form.tsx';
import { useAction } from '../../form/use-action.ts';
import { dateTime } from '../../language/format.ts';
import { text } from '../../language/texts.ts';
import { Secret } from '../admin/secret.tsx';
import { Outcome } from '../dashboard/outcome.tsx';
import { useRecentCredential } from '../dashboard/security/recent-credential.tsx';

interface Props {
  application: ApplicationsListOutput['data'][number];
  onChanged(): Promise<void>;
  onRemoved(): Promise<void>;
}

/** An application, and what can be done with it. */
export function ApplicationEntry({ application, onChanged, onRemoved }: Props) {
  const { id, kind, redirectUris, publicKeys, scopes, resources, trusted, enabled } = application;
  const [rotated, setRotated] = useState<ApplicationsRotateSecretOutput>();
  const { busy, act, ...outcome } = useAction();
  const { withRecentCredential, question, isAsking } = useRecentCredential();

  const toggle = () =>
    withRecentCredential(
      () => api.applications.update.mutate({ id, enabled: !enabled }),
      async () => {
        await onChanged();
        return undefined;
      },
    );
  const rotate = () =>
    withRecentCredential(
      () => api.applications.rotateSecret.mutate({ id }),
      (secret) => {
        setRotated(secret);
        return undefined;
      },
    );
  const remove = () =>
    withRecentCredential(
      () => api.applications.delete.mutate({ id }),
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
      busy={text('apps.act.busy')}
      describedBy={`application-${id}`}
      onClick={() => void act(name, work)}
    >
      {label}
    </Button>
  );

  const hasSecret = (kind === 'web' || kind === 'service') && publicKeys.length === 0;
  const what = [
    text(`apps.kinds.${kind}`),
    ...(trusted ? [text('apps.trusted')] : []),
    ...(enabled ? [] : [text('apps.disabled')]),
  ];
  return (
    <div class="stack">
      <div id={`application-${id}`}>
        <strong>{application.name}</strong>
        <p class="hint">{what.join(', ')}</p>
        <p class="hint">{text('apps.clientId', { id })}</p>
        <p class="hint">{[...scopes, ...resources].join(' ')}</p>
        {redirectUris.map((uri) => (
          <p class="hint" key={uri}>
            {uri}
          </p>
        ))}
      </div>
      <div class="choices">
        {button('toggle', text(enabled ? 'apps.act.disable' : 'apps.act.enable'), toggle)}
        {hasSecret && button('rotate', text('apps.act.rotate'), rotate)}
        {button('remove', text('apps.act.remove'), remove)}
      </div>
      {question}
      <Outcome {...outcome} />
      {rotated && (
        <Secret secret={rotated.secret} purpose={text('apps.secret')} formerUntil={dateTime(rotated.formerUntil)} />
      )}
    </div>
  );
}
