import type { AuthorizationsProceedInput, AuthorizationsProceedOutput } from 'account-client';
import type { ComponentChildren } from 'preact';
import { pagePaths } from '../../../server/shared/page-paths.ts';
import { Button } from '../form/form.tsx';
import { scopeText } from '../language/scope-text.ts';
import { markup, text } from '../language/texts.ts';
import { Page } from '../page.tsx';

/** The step `consent` or `second-factor` of a request. */
export type Asked = Pick<AuthorizationsProceedOutput, 'application' | 'scopes' | 'userId' | 'email'> & { step: string };
export type Answer = Pick<AuthorizationsProceedInput, 'allow' | 'userId'>;

interface Props {
  title: string;
  asked: Asked;
  /** The answer under way. */
  busy: boolean | undefined;
  onAnswer(answer: Answer): void;
  /** Stands before the buttons. */
  children?: ComponentChildren;
}

/** What an application asks for, and the buttons that answer. */
export function Consent({
  title,
  asked: { step, application, scopes = [], userId, email = '' },
  busy,
  onAnswer,
  children,
}: Props) {
  const isConsent = step === 'consent';
  const send = (answer: Answer) => {
    // The other button may have been pressed.
    if (busy === undefined) onAnswer(answer);
  };
  return (
    <Page title={title} isNews>
      <p>{markup('entry.authorize.account', { email: <strong>{email}</strong> })}</p>
      {isConsent ? (
        <>
          <p>{text('entry.authorize.asks', { application: application?.name ?? '' })}</p>
          <ul>
            {scopes.map((scope) => (
              <li key={scope}>{scopeText(scope)}</li>
            ))}
          </ul>
        </>
      ) : (
        <p>
          {markup('entry.authorize.secondFactor', {
            application: application?.name,
            link: (label) => <a href={pagePaths.security}>{label}</a>,
          })}
        </p>
      )}
      {children}
      <div class="stack">
        <Button
          isBusy={busy === true}
          busy={text('common.oneMoment')}
          onClick={() => send(isConsent ? { allow: true, userId } : {})}
        >
          {text(isConsent ? 'entry.authorize.allow' : 'entry.authorize.tryAgain')}
        </Button>
        <Button
          kind="secondary"
          isBusy={busy === false}
          busy={text('common.oneMoment')}
          onClick={() => send({ allow: false, userId })}
        >
          {text('entry.authorize.deny')}
        </Button>
      </div>
    </Page>
  );
}
