import { useState } from 'preact/hooks';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api, refusalIn } from '../../api.ts';
import { Alert, Button } from '../../form/form.tsx';
import { sentenceFor } from '../../form/use-form.ts';
import { text } from '../../language/texts.ts';
import { dropDraft } from '../../session/draft.ts';

/** Ends this session or all of them. The next page confirms it only after the service has. */
export function LogOut({ everywhere = false }: { everywhere?: boolean }) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');

  const leave = async () => {
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

  return (
    <div class={everywhere ? 'stack' : 'stack end'}>
      {problem && <Alert>{problem}</Alert>}
      {everywhere && <p>{text('common.logOut.everywhereHint')}</p>}
      <Button kind="secondary" isBusy={isBusy} busy={text('common.logOut.busy')} onClick={() => void leave()}>
        {text(everywhere ? 'common.logOut.everywhere' : 'common.logOut.action')}
      </Button>
    </div>
  );
}
