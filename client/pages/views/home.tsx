import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../../server/page-paths.ts';
import { api, type Refusal, refusalIn } from '../api.ts';
import { OneMoment } from './one-moment.tsx';
import { Unreachable } from './unreachable.tsx';

/** Leads to the dashboard or the login. A script finds out which: a link on another site brings no Strict cookie. */
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
