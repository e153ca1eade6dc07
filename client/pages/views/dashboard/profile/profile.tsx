import { Fragment } from 'preact';
import { useRef } from 'preact/hooks';
import type { Profile as ProfileOfUser } from '../../../api.ts';
import { labelOf, ownFields, valueText } from '../../../form/own-fields.tsx';
import { date } from '../../../language/format.ts';
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
            <ReadOnlyFields values={profile.fields} />
            <MemberSince createdAt={profile.createdAt} />
          </section>
        </>
      )}
    </DashboardPage>
  );
}

/** Fields that others write about the user. */
function ReadOnlyFields({ values = {} }: { values: ProfileOfUser['fields'] }) {
  const facts = ownFields
    .filter(({ write }) => write !== 'owner')
    .map((field) => ({ label: labelOf(field), value: valueText(field, values[field.name]) }))
    .filter(({ value }) => value !== '');
  return facts.length > 0 ? (
    <dl class="facts">
      {facts.map(({ label, value }) => (
        <Fragment key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  ) : null;
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
