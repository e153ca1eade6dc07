import type { KeysListOutput } from 'account-client';
import { useRef } from 'preact/hooks';
import { api } from '../../../api.ts';
import { Button } from '../../../form/form.tsx';
import { useAction } from '../../../form/use-action.ts';
import { Icon } from '../../../icons/icon.tsx';
import { date, dateTime } from '../../../language/format.ts';
import { text } from '../../../language/texts.ts';
import { Outcome, unlessGone } from '../outcome.tsx';
import { NewKey } from './new-key.tsx';
import { Row } from './row.tsx';
import type { RowState } from './use-open-row.ts';

type Key = KeysListOutput['data'][number];

interface Props {
  row: RowState;
  keys: Key[];
  /** Resolves once `keys` is reloaded. */
  onChange(): Promise<void>;
}

/** The user's access keys. */
export function KeysCard({ row, keys, onChange }: Props) {
  /** `busy` is the id being revoked. */
  const { busy, act, ...outcome } = useAction();
  const heading = useRef<HTMLHeadingElement>(null);

  const revoke = ({ id, name }: Key) =>
    act(id, async () => {
      await unlessGone(api.keys.revoke.mutate({ id }));
      await onChange();
      // The pressed button is gone.
      heading.current?.focus();
      return text('dashboard.keys.revoked', { name });
    });

  return (
    <Row
      row={row}
      icon="key"
      title={text('dashboard.keys.title')}
      state={keys.length > 0 ? text('dashboard.keys.count', { count: keys.length }) : text('dashboard.keys.none')}
      action={text(keys.length > 0 ? 'dashboard.security.manage' : 'dashboard.security.add')}
      heading={heading}
    >
      <Outcome {...outcome} />
      <p>{text('dashboard.keys.explanation')}</p>
      <ul class="entries">
        {keys.map((key) => (
          <li key={key.id}>
            <span class="mark">
              <Icon name="key" />
            </span>
            <Listed listed={key} />
            <Button
              kind="secondary"
              isBusy={busy === key.id}
              busy={text('dashboard.keys.revoking')}
              describedBy={`key-${key.id}`}
              onClick={() => void revoke(key)}
            >
              {text('dashboard.keys.revoke')}
            </Button>
          </li>
        ))}
      </ul>
      <NewKey onCreated={onChange} />
    </Row>
  );
}

function Listed({ listed: { id, prefix, name, scopes, createdAt, expiresAt, lastUsedAt } }: { listed: Key }) {
  const added = date(createdAt);
  return (
    <div id={`key-${id}`}>
      <strong>{name}</strong>
      <p class="hint">
        <code>{prefix}…</code>
      </p>
      <p class="hint">{scopes.map((scope) => text(`dashboard.keys.scopes.${scope}`)).join(' · ')}</p>
      <p class="hint">
        {lastUsedAt === null
          ? text('dashboard.keys.unused', { added })
          : text('dashboard.keys.used', { added, lastUsed: dateTime(lastUsedAt) })}{' '}
        {endOf(expiresAt)}
      </p>
    </div>
  );
}

function endOf(expiresAt: number | null): string {
  if (expiresAt === null) return text('dashboard.keys.endless');
  return expiresAt * 1000 > Date.now()
    ? text('dashboard.keys.expires', { date: date(expiresAt) })
    : text('dashboard.keys.expired', { date: date(expiresAt) });
}
