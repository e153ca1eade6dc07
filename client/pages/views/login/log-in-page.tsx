import { useEffect, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { hasReturnTarget, mayLeadOn, takeWayBack } from '../../session/way-back.ts';
import { OneMoment } from '../one-moment.tsx';
import { LogIn } from './log-in.tsx';

/** The login. A logged-in user with a `returnTo` in the URL is led on at once. */
export function LogInPage() {
  const [isNeeded, setNeeded] = useState(!hasReturnTarget());
  useEffect(() => {
    if (isNeeded) return;
    api.profile.get.query().then(
      () => (mayLeadOn() ? location.replace(takeWayBack()) : setNeeded(true)),
      () => setNeeded(true),
    );
  }, []);
  return isNeeded ? <LogIn /> : <OneMoment />;
}
