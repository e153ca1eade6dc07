import { isServiceError, type Profile } from 'account-client';
import { useCallback, useEffect, useState } from 'react';
import { accounts, refusalIn } from './accounts.ts';
import { LogIn } from './log-in.tsx';
import { ProfilePage } from './profile-page.tsx';
import { Register } from './register.tsx';

export function App() {
  /** Undefined while loading; null without a session. */
  const [profile, setProfile] = useState<Profile | null>();
  const [problem, setProblem] = useState('');
  const [isNew, setNew] = useState(false);

  const load = useCallback(async () => {
    try {
      setProfile((await accounts.profile.get.query()).user);
    } catch (error) {
      if (isServiceError(error, 'UNAUTHENTICATED')) setProfile(null);
      else setProblem(refusalIn(error).message);
    }
  }, []);
  useEffect(() => void load(), [load]);

  if (problem) return <p role="alert">{problem}</p>;
  if (profile === undefined) return <p>One moment…</p>;
  if (profile) return <ProfilePage profile={profile} onChange={setProfile} />;
  return (
    <>
      {isNew ? <Register /> : <LogIn onDone={load} />}
      <button type="button" onClick={() => setNew(!isNew)}>
        {isNew ? 'I have an account' : 'I am new here'}
      </button>
    </>
  );
}
