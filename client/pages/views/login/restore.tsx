import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api } from '../../api.ts';
import { Alert, Button } from '../../form/form.tsx';
import { useAction } from '../../form/use-action.ts';
import { sentenceFor } from '../../form/use-form.ts';
import { providerLabel } from '../../language/provider-label.ts';
import { markup, text } from '../../language/texts.ts';
import { lastProvider } from '../../session/last-provider.ts';
import { logInAndContinue } from '../../session/log-in-and-continue.ts';
import { settings } from '../../settings.ts';

/** Offers to restore the account with the credentials just typed. */
export function Restore({ email, password }: { email: string; password: string }) {
  const { busy, refusal, act } = useAction();
  const restore = () =>
    act('restore', async () => {
      await logInAndContinue(
        () => api.account.restore.mutate({ email, password }),
        `${pagePaths.dashboard}?notice=restored`,
      );
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

/** The link to the provider of the refused login; all providers if it is not known. */
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

/** After a login without a password, which cannot restore the account. */
export const RestoreByReset = () => (
  <>
    {text('entry.restore.deleted')}{' '}
    {markup('entry.passkey.restore', { link: (label) => <a href={pagePaths.forgotPassword}>{label}</a> })}
  </>
);
