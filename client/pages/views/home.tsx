import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../../server/shared/page-paths.ts';
import { api, type Refusal, refusalIn } from '../api.ts';
import { OneMoment } from './one-moment.tsx';
import { Unreachable } from './unreachable.tsx';

/** Redirects to the dashboard or the login by script, because a link from another site carries no Strict cookie. */
export function Home() {
  const [refusal, setRefusal] = useState<Refusal>();
  useEffect(() => {
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
