import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../server/page-paths.ts';
import { type Refusal, refusalIn } from './api.ts';
import { followProfile } from './language-of-profile.ts';
import { rememberPage } from './way-back.ts';

/**
 * What a page for logged-in users shows; any other is sent to the login, and comes back. Read by script: after the identity
 * provider the first navigation comes without the Strict cookie, while a request of this page has it. `read` resolves to
 * undefined where the browser goes to another page.
 */
export function useSessionData<T>(read: () => Promise<T | undefined>) {
  const [data, setData] = useState<T>();
  const [refusal, setRefusal] = useState<Refusal>();

  const load = async () => {
    try {
      const [found, follow] = await Promise.all([read(), followProfile()]);
      // Where the browser goes to another page, that one follows.
      if (found !== undefined && !follow()) setData(() => found);
    } catch (error) {
      const found = refusalIn(error);
      if (found.code !== 'UNAUTHENTICATED') return setRefusal(found);
      rememberPage();
      location.replace(pagePaths.logIn);
    }
  };

  useEffect(() => {
    void load();
    // A page from the back/forward cache may show a user who has logged out since.
    const reloadIfKept = ({ persisted }: PageTransitionEvent) => persisted && location.reload();
    addEventListener('pageshow', reloadIfKept);
    return () => removeEventListener('pageshow', reloadIfKept);
  }, []);

  return { data, setData, refusal, load };
}
