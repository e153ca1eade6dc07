import type { KeysListOutput } from 'account-client';
import { useRef } from 'preact/hooks';
import { api } from '../../../api.ts';
import { Button } from '../../../form/form.tsx';
import { useAction } from '../../../form/use-action.ts';
import { date, dateTime } from '../../../language/in-readers-language.ts';
import { text } from '../../../language/texts.ts';
import { Outcome, unlessGone } from '../outcome.tsx';
import { NewKey } from './new-key.tsx';

type Key = KeysListOutput['data'][number];

interface Props {
  keys: Key[];
  /** Resolves once `keys` is reloaded. */
  onChange(): Promise<void>;
}

/** The user's access keys. */
export function KeysCard({ keys, onChange }: Props) {
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
    <section class="card" aria-labelledby="keys">
      <h2 id="keys" ref={heading} tabIndex={-1}>
        {text('dashboard.keys.title')}
      </h2>
      <div class="stack">
        <Outcome {...outcome} />
        <p>{text('dashboard.keys.explanation')}</p>
        <ul class="entries">
          {keys.map((key) => (
            <li key={key.id}>
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
      </div>
    </section>
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
