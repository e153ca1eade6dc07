import type { AuthorizationsProceedInput, AuthorizationsProceedOutput } from 'account-client';
import type { ComponentChildren } from 'preact';
import { Button } from '../form/form.tsx';
import { scopeText } from '../language/scope-text.ts';
import { markup, text } from '../language/texts.ts';
import { Page } from '../page.tsx';

/** The step `consent` of a request. */
export type Asked = Pick<AuthorizationsProceedOutput, 'application' | 'scopes' | 'userId' | 'email'>;
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
  asked: { application, scopes = [], userId, email = '' },
  busy,
  onAnswer,
  children,
}: Props) {
  return (
    <Page title={title} isNews>
      <p>{markup('entry.authorize.account', { email: <strong>{email}</strong> })}</p>
      <p>{text('entry.authorize.asks', { application: application?.name ?? '' })}</p>
      <ul>
        {scopes.map((scope) => (
          <li key={scope}>{scopeText(scope)}</li>
        ))}
      </ul>
      {children}
      <div class="stack">
        <Button
          isBusy={busy === true}
          busy={text('common.oneMoment')}
          onClick={() => onAnswer({ allow: true, userId })}
        >
          {text('entry.authorize.allow')}
        </Button>
        <Button
          kind="secondary"
          isBusy={busy === false}
          busy={text('common.oneMoment')}
          onClick={() => onAnswer({ allow: false, userId })}
        >
          {text('entry.authorize.deny')}
        </Button>
      </div>
    </Page>
  );
}
