import type { ComponentChildren } from 'preact';
import { type PagePath, pagePaths } from '../../../../server/shared/page-paths.ts';
import { api, type Profile } from '../../api.ts';
import { text } from '../../language/texts.ts';
import { Page } from '../../page.tsx';
import { arrivalQuery } from '../../session/arrival-query.ts';
import { useSessionData } from '../../session/use-session-data.ts';
import { takeWayBack } from '../../session/way-back.ts';
import { LogOut } from '../login/log-out.tsx';
import { Unreachable } from '../unreachable.tsx';
import { DashboardArrival } from './arrival.tsx';
import { TermsNotice } from './consents.tsx';

/** The pages of the dashboard, in the order of their links. */
const parts: { path: PagePath; label: string }[] = [
  { path: pagePaths.dashboard, label: text('dashboard.parts.profile') },
  { path: pagePaths.security, label: text('dashboard.parts.security') },
  { path: pagePaths.devices, label: text('dashboard.parts.devices') },
  { path: pagePaths.activity, label: text('dashboard.parts.activity') },
  { path: pagePaths.applications, label: text('dashboard.parts.applications') },
  { path: pagePaths.data, label: text('dashboard.parts.data') },
];

/** On a phone the row of links scrolls. */
const bringIntoSight = (link: HTMLElement | null) => link?.scrollIntoView({ block: 'nearest', inline: 'center' });

interface Props {
  title: string;
  /** Rendered once the profile is loaded. */
  children: (profile: Profile, onChange: (profile: Profile) => void) => ComponentChildren;
}

/** A page for logged-in users. */
export function DashboardPage({ title, children }: Props) {
  const {
    data: profile,
    setData: setProfile,
    refusal,
  } = useSessionData(async () => {
    const { user } = await api.profile.get.query();
    const next = location.pathname === pagePaths.dashboard ? takeWayBack() : location.pathname;
    // The message for which the browser was sent here comes first.
    if (next === location.pathname || arrivalQuery.has('notice')) return user;
    location.replace(next);
    return undefined;
  });

  if (refusal) return <Unreachable refusal={refusal} />;
  return (
    <Page title={title} isWide actions={profile && <LogOut />}>
      <nav class="parts" aria-label={text('dashboard.parts.label')}>
        {parts.map(({ path, label }) => (
          <a
            key={path}
            href={path}
            {...(path === location.pathname && { 'aria-current': 'page', ref: bringIntoSight })}
          >
            {label}
          </a>
        ))}
      </nav>
      <DashboardArrival />
      {profile && <TermsNotice />}
      {profile ? children(profile, setProfile) : <p aria-busy="true">{text('common.oneMoment')}</p>}
    </Page>
  );
}
