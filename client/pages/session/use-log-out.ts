import { useState } from 'preact/hooks';
import { pagePaths } from '../../../server/shared/page-paths.ts';
import { api, refusalIn } from '../api.ts';
import { sentenceFor } from '../form/use-form.ts';
import { dropDraft } from './draft.ts';

/** Ends this session or all of them. The next page confirms it only after the service has. */
export function useLogOut({ everywhere = false } = {}) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');

  const logOut = async () => {
    if (isBusy) return;
    setBusy(true);
    setProblem('');
    try {
      await (everywhere ? api.auth.logoutAll : api.auth.logout).mutate();
    } catch (error) {
      const refusal = refusalIn(error);
      // Without a session there is nothing to end.
      if (refusal.code !== 'UNAUTHENTICATED') {
        setProblem(sentenceFor(refusal));
        setBusy(false);
        return;
      }
    }
    dropDraft();
    location.replace(`${pagePaths.logIn}?notice=${everywhere ? 'logged-out-everywhere' : 'logged-out'}`);
  };

  return { isBusy, problem, logOut };
}
