import type { ComponentChildren } from 'preact';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { OwnAccountMenu } from '../../account-menu/account-menu.tsx';
import { text } from '../../language/texts.ts';
import { Page } from '../../page.tsx';
import { type Part, PartsNav } from '../../parts-nav.tsx';
import { Skeleton } from '../skeleton.tsx';
import { Tabs, tabOf } from './tabs.tsx';

const parts: Part[] = [
  { path: pagePaths.admin, icon: 'users', label: text('admin.nav.users') },
  { path: pagePaths.webhooks, icon: 'webhook', label: text('admin.nav.webhooks') },
  { path: pagePaths.adminApplications, icon: 'apps', label: text('admin.nav.applications') },
  { path: pagePaths.dashboard, icon: 'user', label: text('admin.nav.yourAccount'), isApart: true },
];

/** Known before the data, except the name of a user. */
const titleOfPart = new URLSearchParams(location.search).has('user')
  ? undefined
  : parts.find(({ path }) => path === location.pathname)?.label;

interface Props {
  /** Undefined until the data is loaded. */
  title: string | undefined;
  children: ComponentChildren;
}

/** The header and the links of a page for administrators: the same before and after its data is loaded. */
export const AdminFrame = ({ title = titleOfPart, children }: Props) => (
  <Page
    title={title ?? text('common.oneMoment')}
    isLoading={title === undefined}
    isWide
    actions={<OwnAccountMenu />}
    nav={<PartsNav label={text('admin.nav.label')} parts={parts} />}
  >
    {children}
  </Page>
);

/** The content of the page before its data is loaded. */
export const AdminWaiting = () => (
  <>
    {titleOfPart !== undefined && location.pathname === pagePaths.admin && <Tabs current={tabOf(location.search)} />}
    <div class="card">
      <Skeleton lines={8} />
    </div>
  </>
);
