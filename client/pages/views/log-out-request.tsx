import type { AuthorizationsLogOutOutput } from 'account-client';
import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../../server/shared/page-paths.ts';
import { api, type Refusal, refusalIn } from '../api.ts';
import { Button } from '../form/form.tsx';
import { markup, text } from '../language/texts.ts';
import { Page } from '../page.tsx';
import { dropDraft } from '../session/draft.ts';
import { OneMoment } from './one-moment.tsx';
import { Unreachable } from './unreachable.tsx';

/** The names of OpenID Connect RP-Initiated Logout 1.0. */
const parameters = new URLSearchParams(location.hash.slice(1));
const request = {
  idTokenHint: parameters.get('id_token_hint') ?? undefined,
  clientId: parameters.get('client_id') ?? undefined,
  postLogoutRedirectUri: parameters.get('post_logout_redirect_uri') ?? undefined,
  state: parameters.get('state') ?? undefined,
};

/** Another application asks for a logout. Its ID token answers the question whether the user wants it. */
export function LogOutRequest() {
  const [asked, setAsked] = useState<AuthorizationsLogOutOutput>();
  const [refusal, setRefusal] = useState<Refusal>();
  const [isBusy, setBusy] = useState(false);

  const logOut = async (userId?: string) => {
    setBusy(true);
    try {
      const next = await api.authorizations.logOut.mutate({ ...request, userId });
      if (next.step === 'confirm') {
        setAsked(next);
        return setBusy(false);
      }
      dropDraft();
      location.replace(next.location ?? `${pagePaths.logIn}?notice=logged-out`);
    } catch (error) {
      setRefusal(refusalIn(error));
    }
  };
  useEffect(() => void logOut(), []);

  if (refusal) return <Unreachable refusal={refusal} />;
  if (!asked) return <OneMoment />;
  const { userId, email = '' } = asked;
  return (
    <Page title={text('entry.logOut.title')} isNews>
      <p>{markup('entry.authorize.account', { email: <strong>{email}</strong> })}</p>
      <div class="stack">
        <Button isBusy={isBusy} busy={text('common.logOut.busy')} onClick={() => void logOut(userId)}>
          {text('common.logOut.action')}
        </Button>
        <a class="secondary button" href={pagePaths.dashboard}>
          {text('entry.logOut.stay')}
        </a>
      </div>
    </Page>
  );
}
