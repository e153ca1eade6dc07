import type { ComponentChildren } from 'preact';
import { pagePaths } from '../../../../server/page-paths.ts';
import { Page } from '../../page.tsx';
import { text } from '../../texts.ts';
import { useSessionData } from '../../use-session-data.ts';
import { DashboardArrival } from '../dashboard/arrival.tsx';
import { LogOut } from '../log-out.tsx';
import { NotFound } from '../not-found.tsx';
import { OneMoment } from '../one-moment.tsx';
import { Unreachable } from '../unreachable.tsx';

interface Props<T> {
  title(data: T): string;
  read(): Promise<T>;
  /** Drawn once `data` is there. `reload` resolves once it is read again. */
  children: (data: T, reload: () => Promise<void>) => ComponentChildren;
}

/** A page for administrators. For any other user there is none. */
export function AdminPage<T>({ title, read, children }: Props<T>) {
  const { data, refusal, load } = useSessionData(read);
  if (refusal?.code === 'FORBIDDEN' || refusal?.code === 'NOT_FOUND') return <NotFound />;
  if (refusal) return <Unreachable refusal={refusal} />;
  if (data === undefined) return <OneMoment />;
  return (
    <Page title={title(data)} isWide actions={<LogOut />}>
      <nav class="parts" aria-label={text('admin.nav.label')}>
        <a href={pagePaths.admin}>{text('admin.nav.allUsers')}</a>
        <a href={pagePaths.dashboard}>{text('admin.nav.yourAccount')}</a>
      </nav>
      <DashboardArrival />
      {children(data, load)}
    </Page>
  );
}
