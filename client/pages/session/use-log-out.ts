import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { pagePaths } from '../../../server/shared/page-paths.ts';
import { api, refusalIn } from '../api.ts';
import { sentenceFor } from '../form/use-form.ts';
import { sessionEnded } from '../views/session-ended.tsx';
import { dropDraft } from './draft.ts';

/** Ends this session or all of them. The next page confirms it only after the service has. */
export function useLogOut({ everywhere = false } = {}) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ComponentChildren>('');

  const logOut = async () => {
    if (isBusy) return;
    setBusy(true);
    setProblem('');
    try {
      await (everywhere ? api.auth.logoutAll : api.auth.logout).mutate();
    } catch (error) {
      const refusal = refusalIn(error);
      // Without a session only the others are left to end.
      if (everywhere || refusal.code !== 'UNAUTHENTICATED') {
        setProblem(sessionEnded(refusal)?.message ?? sentenceFor(refusal));
        setBusy(false);
        return;
      }
    }
    dropDraft();
    location.replace(`${pagePaths.logIn}?notice=${everywhere ? 'logged-out-everywhere' : 'logged-out'}`);
  };

  return { isBusy, problem, logOut };
}
