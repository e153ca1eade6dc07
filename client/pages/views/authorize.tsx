import type { AuthorizationsProceedInput, AuthorizationsProceedOutput } from 'account-client';
import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../../server/shared/page-paths.ts';
import { api, type Refusal, refusalIn } from '../api.ts';
import { Button } from '../form/form.tsx';
import { scopeText } from '../language/scope-text.ts';
import { markup, text } from '../language/texts.ts';
import { Page } from '../page.tsx';
import { rememberPage } from '../session/way-back.ts';
import { LinkOutcome } from './mailed-links/link-outcome.tsx';
import { OneMoment } from './one-moment.tsx';
import { Unreachable } from './unreachable.tsx';

const id = new URLSearchParams(location.search).get('id') ?? '';

/** Another application asks for a login. A session and an earlier consent answer it without a word. */
export function Authorize() {
  const [asked, setAsked] = useState<AuthorizationsProceedOutput>();
  const [refusal, setRefusal] = useState<Refusal>();
  const [busy, setBusy] = useState<boolean>();

  const proceed = async (answer: Omit<AuthorizationsProceedInput, 'id'> = {}) => {
    setBusy(answer.allow);
    try {
      const next = await api.authorizations.proceed.mutate({ id, ...answer });
      if (next.location !== undefined) return location.replace(next.location);
      if (next.application) {
        setAsked(next);
        return setBusy(undefined);
      }
      rememberPage();
      location.replace(pagePaths.logIn);
    } catch (error) {
      setRefusal(refusalIn(error));
    }
  };
  useEffect(() => void proceed(), []);

  if (refusal?.code === 'NOT_FOUND')
    return <LinkOutcome title={text('entry.authorize.expired')} explanation={text('entry.authorize.startAgain')} />;
  if (refusal) return <Unreachable refusal={refusal} />;
  if (!asked?.application) return <OneMoment />;
  const { application, scopes = [], userId, email = '' } = asked;
  return (
    <Page title={text('entry.authorize.title', { application: application.name })} isNews>
      <p>{markup('entry.authorize.account', { email: <strong>{email}</strong> })}</p>
      {asked.step === 'consent' ? (
        <>
          <p>{text('entry.authorize.asks', { application: application.name })}</p>
          <ul>
            {scopes.map((scope) => (
              <li key={scope}>{scopeText(scope)}</li>
            ))}
          </ul>
        </>
      ) : (
        <p>
          {markup('entry.authorize.secondFactor', {
            application: application.name,
            link: (label) => <a href={pagePaths.security}>{label}</a>,
          })}
        </p>
      )}
      <div class="stack">
        <Button
          isBusy={busy === true}
          busy={text('common.oneMoment')}
          onClick={() => void proceed({ allow: true, userId })}
        >
          {text(asked.step === 'consent' ? 'entry.authorize.allow' : 'entry.authorize.tryAgain')}
        </Button>
        <Button
          kind="secondary"
          isBusy={busy === false}
          busy={text('common.oneMoment')}
          onClick={() => void proceed({ allow: false, userId })}
        >
          {text('entry.authorize.deny')}
        </Button>
      </div>
    </Page>
  );
}
