import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { Alert } from '../../form/form.tsx';
import { markup } from '../../language/texts.ts';

const CHANGED = 'password-changed';

export const passwordChanged = (): void => void dispatchEvent(new Event(CHANGED));

/** Asks a user who logged in with a breached password to change it. Gone after the change. */
export function BreachedPassword() {
  const [isChanged, setChanged] = useState(false);
  useEffect(() => {
    const hide = () => setChanged(true);
    addEventListener(CHANGED, hide);
    return () => removeEventListener(CHANGED, hide);
  }, []);
  if (isChanged) return null;
  return (
    <Alert>
      {markup('dashboard.breachedPassword', {
        link: (label) => <a href={`${pagePaths.security}#password`}>{label}</a>,
      })}
    </Alert>
  );
}
