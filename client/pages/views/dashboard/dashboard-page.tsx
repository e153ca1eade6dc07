import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { readProfile } from '../../account-menu/account-menu.tsx';
import type { Profile } from '../../api.ts';
import { ImpersonationBar } from '../../impersonation-bar.tsx';
import { arrivalQuery } from '../../session/arrival-query.ts';
import { useSessionData } from '../../session/use-session-data.ts';
import { isOnlyPassedThrough, takeWayBack } from '../../session/way-back.ts';
import { OneMoment } from '../one-moment.tsx';
import { Skeleton } from '../skeleton.tsx';
import { Unreachable } from '../unreachable.tsx';
import { DashboardArrival } from './arrival.tsx';
import { BreachedPassword } from './breached-password.tsx';
import { hasTermsToAccept, TermsNotice } from './consents.tsx';
import { DashboardFrame } from './frame.tsx';

interface Props {
  title: string;
  /** Rendered once the profile is loaded. */
  children: (profile: Profile, onChange: (profile: Profile) => void) => ComponentChildren;
}

/** A page for logged-in users. */
export function DashboardPage({ title, children }: Props) {
  const { data, setData, refusal } = useSessionData(async () => {
    const [profile, hasNewTerms] = await Promise.all([readProfile(), hasTermsToAccept()]);
    const answer = { ...profile, hasNewTerms };
    const next = location.pathname === pagePaths.dashboard ? takeWayBack() : location.pathname;
    // The message for which the browser was sent here comes first.
    if (next === location.pathname || arrivalQuery.has('notice')) return answer;
    location.replace(next);
    return undefined;
  });

  // Read once: the way back is dropped when it is taken.
  const [isPassedThrough] = useState(isOnlyPassedThrough);
  if (refusal) return <Unreachable refusal={refusal} />;
  const { user: profile, impersonation } = data ?? {};
  const setProfile = (user: Profile) => setData((known) => known && { ...known, user });
  if (isPassedThrough && !profile) return <OneMoment isPassedThrough />;
  return (
    <DashboardFrame
      title={title}
      user={profile}
      bar={profile && impersonation && <ImpersonationBar impersonation={impersonation} email={profile.email} />}
    >
      <DashboardArrival />
      {data?.hasBreachedPassword && <BreachedPassword />}
      {data?.hasNewTerms && !impersonation && <TermsNotice />}
      {profile ? (
        children(profile, setProfile)
      ) : (
        <div class="card">
          <Skeleton />
        </div>
      )}
    </DashboardFrame>
  );
}
