import { type Profile, srcSet, uploadImage } from 'account-client';
import { scalePicture } from 'account-client/editor';
import { useState } from 'react';
import { accounts, refusalIn } from './accounts.ts';
import { Form } from './form.tsx';
import { Pictures } from './pictures.tsx';

interface Props {
  profile: Profile;
  /** Called with null after the logout. */
  onChange(profile: Profile | null): void;
}

export function ProfilePage({ profile, onChange }: Props) {
  const logOut = async () => {
    await accounts.auth.logout.mutate();
    onChange(null);
  };

  return (
    <>
      <Form
        title="Your profile"
        fields={{
          name: { label: 'Name', type: 'text', autoComplete: 'name', value: profile.name },
          bio: { label: 'Bio', type: 'text', autoComplete: 'off', value: profile.bio },
        }}
        submit="Save"
        send={async ({ name = '', bio = '' }) => onChange((await accounts.profile.update.mutate({ name, bio })).user)}
      />
      <Avatar profile={profile} onChange={onChange} />
      <Pictures />
      <button type="button" onClick={() => void logOut()}>
        Log out
      </button>
    </>
  );
}

function Avatar({ profile, onChange }: Props) {
  const [share, setShare] = useState<number>();
  const [problem, setProblem] = useState('');

  const upload = async (file: File) => {
    setProblem('');
    try {
      const { url } = await uploadImage(accounts, await scalePicture(file), {
        type: 'avatar',
        onProgress: ({ loaded, total }) => setShare(loaded / total),
      });
      onChange((await accounts.profile.update.mutate({ avatar: url })).user);
    } catch (error) {
      const { message, fields } = refusalIn(error);
      setProblem(fields['file'] ?? message);
    } finally {
      setShare(undefined);
    }
  };

  return (
    <p>
      {profile.avatar && (
        <img
          src={profile.avatar}
          srcSet={srcSet({ url: profile.avatar, variants: profile.avatarVariants })}
          sizes="96px"
          alt="You"
          width="96"
          height="96"
        />
      )}
      <label>
        Picture{' '}
        <input
          type="file"
          accept="image/*"
          onChange={({ currentTarget: { files } }) => files?.[0] && void upload(files[0])}
        />
      </label>
      {share !== undefined && <progress value={share} aria-label="Upload" />}
      {problem && <span role="alert">{problem}</span>}
    </p>
  );
}
