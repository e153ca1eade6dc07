import { useRef } from 'preact/hooks';
import { date } from '../../../language/in-readers-language.ts';
import { markup, text } from '../../../language/texts.ts';
import { DashboardPage } from '../dashboard-page.tsx';
import { AvatarPicker } from './avatar-picker.tsx';
import { ProfileForm } from './profile-form.tsx';

export function Profile() {
  /** Settles when no upload of a picture is running. */
  const picture = useRef(Promise.resolve());
  return (
    <DashboardPage title={text('dashboard.profile.title')}>
      {(profile, onChange) => (
        <>
          <AvatarPicker profile={profile} onChange={onChange} picture={picture} />
          <section class="card">
            <ProfileForm profile={profile} onChange={onChange} picture={picture} />
            <MemberSince createdAt={profile.createdAt} />
          </section>
        </>
      )}
    </DashboardPage>
  );
}

function MemberSince({ createdAt }: { createdAt: number }) {
  return (
    <p class="aside">
      {markup('dashboard.profile.memberSince', {
        date: <time dateTime={new Date(createdAt * 1000).toISOString()}>{date(createdAt)}</time>,
      })}
    </p>
  );
}
