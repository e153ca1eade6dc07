import { Alert, Button } from '../../form/form.tsx';
import { text } from '../../language/texts.ts';
import { useLogOut } from '../../session/use-log-out.ts';

/** The button that ends this session, or all of them. `label` replaces the usual one. */
export function LogOut({ everywhere = false, label }: { everywhere?: boolean; label?: string }) {
  const { isBusy, problem, logOut } = useLogOut({ everywhere });
  return (
    <div class="stack">
      {problem && <Alert>{problem}</Alert>}
      <Button
        kind="secondary"
        isBusy={isBusy}
        busy={text('common.logOut.busy')}
        icon="logOut"
        onClick={() => void logOut()}
      >
        {label ?? text(everywhere ? 'common.logOut.everywhere' : 'common.logOut.action')}
      </Button>
    </div>
  );
}
