import type { ComponentChildren } from 'preact';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { AccountMenu } from '../../account-menu/account-menu.tsx';
import type { Profile } from '../../api.ts';
import { text } from '../../language/texts.ts';
import { Page } from '../../page.tsx';
import { type Part, PartsNav } from '../../parts-nav.tsx';

/** The pages of the dashboard, in the order of their links. */
const parts: Part[] = [
  { path: pagePaths.dashboard, icon: 'user', label: text('dashboard.parts.profile') },
  { path: pagePaths.security, icon: 'shield', label: text('dashboard.parts.security') },
  { path: pagePaths.devices, icon: 'devices', label: text('dashboard.parts.devices') },
  { path: pagePaths.activity, icon: 'history', label: text('dashboard.parts.activity') },
  { path: pagePaths.applications, icon: 'apps', label: text('dashboard.parts.applications') },
  { path: pagePaths.data, icon: 'data', label: text('dashboard.parts.data') },
];

interface Props {
  title: string;
  /** Undefined until it is loaded. */
  user?: Profile | undefined;
  /** Takes the place of the menu. */
  bar?: ComponentChildren;
  children: ComponentChildren;
}

/** The header and the links of a page of the dashboard: the same before and after its data is loaded. */
export const DashboardFrame = ({ title, user, bar, children }: Props) => (
  <Page
    title={title}
    isWide
    bar={bar}
    actions={bar ? undefined : <AccountMenu user={user} />}
    nav={<PartsNav label={text('dashboard.parts.label')} parts={parts} />}
  >
    {children}
  </Page>
);
