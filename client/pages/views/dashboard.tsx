import { useEffect, useRef, useState } from 'preact/hooks';
import { pagePaths } from '../../../server/page-paths.ts';
import { api, type Profile, type Refusal, refusalIn } from '../api.ts';
import { date } from '../in-readers-language.ts';
import { Page } from '../page.tsx';
import { AvatarPicker } from './avatar-picker.tsx';
import { Devices } from './devices.tsx';
import { LogOut } from './log-out.tsx';
import { ProfileForm } from './profile-form.tsx';
import { providerLabel } from './provider-links.tsx';
import { Unreachable } from './unreachable.tsx';

/**
 * Requests the profile by script: after the identity provider the first navigation comes without the Strict cookie,
 * while a request of this page has it.
 */
export function Dashboard() {
  const [profile, setProfile] = useState<Profile>();
  const [refusal, setRefusal] = useState<Refusal>();
  /** Settles when no picture is being uploaded. */
  const picture = useRef(Promise.resolve());

  useEffect(() => {
    api.profile.get.query().then(
      ({ user }) => setProfile(user),
      (error: unknown) => {
        const found = refusalIn(error);
        if (found.code === 'UNAUTHENTICATED') location.replace(pagePaths.logIn);
        else setRefusal(found);
      },
    );
    // A page from the back/forward cache may show a user who has logged out since.
    const reloadIfKept = ({ persisted }: PageTransitionEvent) => persisted && location.reload();
    addEventListener('pageshow', reloadIfKept);
    return () => removeEventListener('pageshow', reloadIfKept);
  }, []);

  if (refusal) return <Unreachable refusal={refusal} />;
  if (!profile) {
    return (
      <Page title="Your profile" isWide>
        <p aria-busy="true">One moment …</p>
      </Page>
    );
  }
  return (
    <Page title="Your profile" isWide actions={<LogOut />}>
      <section class="card picture">
        <AvatarPicker profile={profile} onChange={setProfile} picture={picture} />
      </section>
      <section class="card">
        <ProfileForm profile={profile} onChange={setProfile} picture={picture} />
      </section>
      <Devices />
      <section class="card" aria-labelledby="account">
        <h2 id="account">Account</h2>
        <Facts profile={profile} />
        <LogOut everywhere />
      </section>
    </Page>
  );
}

function Facts({ profile: { email, provider, createdAt } }: { profile: Profile }) {
  return (
    <dl>
      <dt>Email</dt>
      <dd>{email}</dd>
      <dt>Login</dt>
      <dd>{provider === 'email' ? 'with a password' : `with ${providerLabel(provider)}`}</dd>
      <dt>Member since</dt>
      <dd>
        <time dateTime={new Date(createdAt * 1000).toISOString()}>{date(createdAt)}</time>
      </dd>
    </dl>
  );
}
