import type { GrantsListOutput } from 'account-client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { Button } from '../../form/form.tsx';
import { useAction } from '../../form/use-action.ts';
import { Icon } from '../../icons/icon.tsx';
import { dateTime } from '../../language/format.ts';
import { scopeText } from '../../language/scope-text.ts';
import { text } from '../../language/texts.ts';
import { Skeleton } from '../skeleton.tsx';
import { DashboardPage } from './dashboard-page.tsx';
import { Outcome, unlessGone } from './outcome.tsx';

export const Applications = () => (
  <DashboardPage title={text('dashboard.parts.applications')}>{() => <Access />}</DashboardPage>
);

/** The applications with access to the account. */
function Access() {
  const [grants, setGrants] = useState<GrantsListOutput['data']>();
  const { busy, refusal, notice, act } = useAction();
  const heading = useRef<HTMLHeadingElement>(null);

  const load = async () => setGrants((await api.grants.list.query()).data);
  useEffect(() => {
    void act('load', () => load().then(() => undefined));
  }, []);

  const end = (id: string) =>
    act(id, async () => {
      await unlessGone(api.grants.revoke.mutate({ id }));
      await load();
      // The pressed button is gone.
      heading.current?.focus();
      return text('dashboard.applications.ended');
    });

  return (
    <section class="card" aria-labelledby="applications">
      <h2 id="applications" ref={heading} tabIndex={-1}>
        {text('dashboard.applications.title')}
      </h2>
      <div class="stack">
        <Outcome refusal={refusal} notice={notice} />
        {!grants && !refusal && <Skeleton />}
        {grants?.length === 0 && <p>{text('dashboard.applications.none')}</p>}
        <ul class="entries">
          {grants?.map(({ id, name, scopes, createdAt, lastUsedAt }) => (
            <li key={id}>
              <span class="mark">
                <Icon name="app" />
              </span>
              <div id={`application-${id}`}>
                <strong>{name}</strong>
                <p class="hint">{scopes.map(scopeText).join(' · ')}</p>
                <p class="hint">
                  {text('dashboard.applications.times', {
                    created: dateTime(createdAt),
                    lastUsed: dateTime(lastUsedAt),
                  })}
                </p>
              </div>
              <Button
                kind="secondary"
                isBusy={busy === id}
                busy={text('dashboard.applications.ending')}
                describedBy={`application-${id}`}
                onClick={() => void end(id)}
              >
                {text('dashboard.applications.end')}
              </Button>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}
