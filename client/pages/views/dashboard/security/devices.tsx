import type { SessionsListOutput } from 'account-client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { deviceLabel } from '../../../../../server/shared/texts/device.ts';
import { api, type Refusal, refusalIn } from '../../../api.ts';
import { Alert, Button, Notice } from '../../../form/form.tsx';
import { sentenceFor } from '../../../form/use-form.ts';
import { deviceIcon } from '../../../icons/device-icon.ts';
import { Icon } from '../../../icons/icon.tsx';
import { dateTime } from '../../../language/format.ts';
import { wayIn } from '../../../language/provider-label.ts';
import { text } from '../../../language/texts.ts';
import { LogOut } from '../../login/log-out.tsx';
import { sessionEnded } from '../../session-ended.tsx';
import { Skeleton } from '../../skeleton.tsx';
import { DashboardPage } from '../dashboard-page.tsx';
import { unlessGone } from '../outcome.tsx';

type Session = SessionsListOutput['data'][number];

export function Devices() {
  return (
    <DashboardPage title={text('dashboard.parts.devices')}>
      {() => (
        <>
          <Sessions />
          <section class="card takes" aria-labelledby="everywhere">
            <h2 id="everywhere">{text('common.logOut.everywhere')}</h2>
            <p>{text('dashboard.devices.everywhereHint')}</p>
            <LogOut everywhere />
          </section>
        </>
      )}
    </DashboardPage>
  );
}

/** The user's sessions. All but the current one can be ended here; that one has a button at the top. */
function Sessions() {
  const [sessions, setSessions] = useState<Session[]>();
  const [refusal, setRefusal] = useState<Refusal>();
  /** The ids of the sessions being ended. */
  const [ending, setEnding] = useState<string[]>([]);
  const [notice, setNotice] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);

  const load = async () => setSessions((await api.sessions.list.query()).data);
  useEffect(() => {
    load().catch((error: unknown) => setRefusal(refusalIn(error)));
  }, []);

  const end = async (ids: string[], done: string) => {
    setRefusal(undefined);
    setNotice('');
    setEnding(ids);
    try {
      try {
        for (const id of ids) await unlessGone(api.sessions.end.mutate({ id }));
      } finally {
        await load();
      }
      setNotice(done);
      // The pressed button is gone.
      heading.current?.focus();
    } catch (error) {
      setRefusal(refusalIn(error));
    } finally {
      setEnding([]);
    }
  };

  const others = sessions?.filter(({ current }) => !current).map(({ id }) => id) ?? [];
  return (
    <section class="card takes" aria-labelledby="devices">
      <h2 id="devices" ref={heading} tabIndex={-1}>
        {text('dashboard.devices.title')}
      </h2>
      <div class="stack">
        {refusal && <Alert>{sessionEnded(refusal)?.message ?? sentenceFor(refusal)}</Alert>}
        {notice && <Notice>{notice}</Notice>}
        {!sessions && !refusal && <Skeleton />}
        <ul class="entries">
          {sessions?.map((session) => (
            <li key={session.id}>
              <span class="mark">
                <Icon name={deviceIcon(session.device)} />
              </span>
              <Device session={session} />
              {!session.current && (
                <Button
                  kind="secondary"
                  isBusy={ending.includes(session.id)}
                  busy={text('dashboard.devices.ending')}
                  describedBy={`device-${session.id}`}
                  onClick={() => void end([session.id], text('dashboard.devices.ended'))}
                >
                  {text('dashboard.devices.end')}
                </Button>
              )}
            </li>
          ))}
        </ul>
        {others.length > 1 && (
          <Button
            kind="secondary"
            isBusy={ending.length > 1}
            busy={text('dashboard.devices.ending')}
            onClick={() => void end(others, text('dashboard.devices.othersEnded'))}
          >
            {text('dashboard.devices.endOthers')}
          </Button>
        )}
      </div>
    </section>
  );
}

/** `current` is known only for the user's own sessions. */
export function Device({ session }: { session: Omit<Session, 'current'> & Partial<Session> }) {
  const { id, device, current, address, method, createdAt, lastUsedAt } = session;
  // The service stores only the hour of the last use, which may have begun before the login.
  const isUsedSince = lastUsedAt > createdAt;
  const login = { way: wayIn(method), time: dateTime(createdAt), address };
  return (
    <div id={`device-${id}`}>
      <strong>{deviceLabel(device, text)}</strong>{' '}
      {current && <span class="badge success">{text('dashboard.devices.thisDevice')}</span>}
      <p class="hint">{text('dashboard.devices.loggedIn', login)}</p>
      {isUsedSince && <p class="hint">{text('dashboard.devices.lastUsed', { time: dateTime(lastUsedAt) })}</p>}
    </div>
  );
}
