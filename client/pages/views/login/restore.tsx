import { pagePaths } from '../../../server/page-paths.ts';
import { api } from '../api.ts';
import { enter } from '../enter.ts';
import { Alert, Button } from '../form/form.tsx';
import { useAction } from '../form/use-action.ts';
import { sentenceFor } from '../form/use-form.ts';
import { lastProvider } from '../last-provider.ts';
import { providerLabel } from '../provider-label.ts';
import { settings } from '../settings.ts';
import { text } from '../texts.ts';

/** Offers to restore the account with the credentials that were just typed. */
export function Restore({ email, password }: { email: string; password: string }) {
  const { busy, refusal, act } = useAction();
  const restore = () =>
    act('restore', async () => {
      await enter(() => api.account.restore.mutate({ email, password }), `${pagePaths.dashboard}?notice=restored`);
      return undefined;
    });

  return (
    <div class="stack">
      <p>{text('entry.restore.deleted')}</p>
      {refusal && <Alert>{sentenceFor(refusal)}</Alert>}
      <Button kind="secondary" isBusy={busy !== ''} busy={text('entry.restore.busy')} onClick={() => void restore()}>
        {text('entry.restore.action')}
      </Button>
    </div>
  );
}

/** The same for those who came through a provider: any other leads to no account. All are offered where this one is not known. */
export function RestoreThroughProvider() {
  const last = lastProvider();
  const providers = last ? [last] : settings.providers;
  return (
    <div class="stack">
      <p>{text('entry.restore.deleted')}</p>
      {providers.map((provider) => (
        <a key={provider} class="secondary button" href={`/auth/${provider}?restore=1`}>
          {text('entry.restore.throughProvider', { provider: providerLabel(provider) })}
        </a>
      ))}
    </div>
  );
}
