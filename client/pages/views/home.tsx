import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../../server/shared/page-paths.ts';
import { api, type Refusal, refusalIn } from '../api.ts';
import { arrivalQuery } from '../session/arrival-query.ts';
import { endOfLogin } from '../session/way-back.ts';
import { OneMoment } from './one-moment.tsx';
import { Unreachable } from './unreachable.tsx';

/**
 * Redirects to the dashboard or the login by script, because a link from another site carries no Strict cookie. A login
 * through a provider ends here if there is a product to go to.
 */
export function Home() {
  const [refusal, setRefusal] = useState<Refusal>();
  useEffect(() => {
    if (arrivalQuery.get('notice') === 'logged-in') return location.replace(endOfLogin());
    api.profile.get.query().then(
      () => location.replace(pagePaths.dashboard),
      (error: unknown) => {
        const found = refusalIn(error);
        if (found.code === 'UNAUTHENTICATED') location.replace(pagePaths.logIn);
        else setRefusal(found);
      },
    );
  }, []);
  if (refusal) return <Unreachable refusal={refusal} />;
  return <OneMoment />;
}
