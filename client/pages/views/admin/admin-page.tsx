import type { ComponentChildren } from 'preact';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { text } from '../../language/texts.ts';
import { Page } from '../../page.tsx';
import { useSessionData } from '../../session/use-session-data.ts';
import { DashboardArrival } from '../dashboard/arrival.tsx';
import { LogOut } from '../login/log-out.tsx';
import { NotFound } from '../not-found.tsx';
import { OneMoment } from '../one-moment.tsx';
import { Unreachable } from '../unreachable.tsx';

interface Props<T> {
  title(data: T): string;
  read(): Promise<T>;
  /** Rendered once `data` is loaded. `reload` resolves once it is loaded again. */
  children: (data: T, reload: () => Promise<void>) => ComponentChildren;
}

/** A page for administrators. Everyone else sees “Page not found”. */
export function AdminPage<T>({ title, read, children }: Props<T>) {
  const { data, refusal, load } = useSessionData(read);
  if (refusal?.code === 'FORBIDDEN' || refusal?.code === 'NOT_FOUND') return <NotFound />;
  // Data that cannot be loaded again stays: it may be beside a secret that is shown once.
  if (refusal && data === undefined) return <Unreachable refusal={refusal} />;
  if (data === undefined) return <OneMoment />;
  return (
    <Page title={title(data)} isWide actions={<LogOut />}>
      <nav class="parts" aria-label={text('admin.nav.label')}>
        <a href={pagePaths.admin}>{text('admin.nav.allUsers')}</a>
        <a href={pagePaths.webhooks}>{text('admin.nav.webhooks')}</a>
        <a href={pagePaths.adminApplications}>{text('admin.nav.applications')}</a>
        <a href={pagePaths.dashboard}>{text('admin.nav.yourAccount')}</a>
      </nav>
      <DashboardArrival />
      {children(data, load)}
    </Page>
  );
}
