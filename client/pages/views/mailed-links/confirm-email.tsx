import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../../server/page-paths.ts';
import { api, refusalIn } from '../api.ts';
import { Button, Form } from '../form/form.tsx';
import type { useForm } from '../form/use-form.ts';
import { mailedLink, useMailedLink } from '../mailed-link.ts';
import { Page } from '../page.tsx';
import { markup, text } from '../texts.ts';
import { rememberPage } from '../way-back.ts';
import { LinkRefused } from './link-refused.tsx';
import { Unreachable } from './unreachable.tsx';

/** The page that the link to a new address opens. It works in a session of the account only. */
export function ConfirmEmail() {
  const [isLoggedOut, setLoggedOut] = useState(false);
  const { outcome, isRefused, isBusy, form } = useMailedLink({
    initial: {},
    send: (token) => api.account.confirmEmail.mutate({ token }),
    explain({ code }) {
      if (code === 'UNAUTHENTICATED') setLoggedOut(true);
      return code === 'EMAIL_TAKEN' ? { message: text('entry.confirmEmail.taken') } : undefined;
    },
  });
  if (isLoggedOut) return <LogInFirst />;
  if (outcome) return <Changed />;
  if (isRefused) return <Refused />;
  return <Confirm isBusy={isBusy} form={form} onLoggedOut={() => setLoggedOut(true)} />;
}

interface ConfirmProps extends Pick<ReturnType<typeof useForm>, 'isBusy' | 'form'> {
  onLoggedOut(): void;
}

/** Shows the account: the browser may be logged in to another than the user has in mind. */
function Confirm({ isBusy, form, onLoggedOut }: ConfirmProps) {
  const [email, setEmail] = useState<string>();
  const [refusal, setRefusal] = useState<ReturnType<typeof refusalIn>>();
  useEffect(() => {
    api.profile.get.query().then(
      ({ user }) => setEmail(user.email),
      (error: unknown) => {
        const found = refusalIn(error);
        if (found.code === 'UNAUTHENTICATED') onLoggedOut();
        else setRefusal(found);
      },
    );
  }, []);
  if (refusal) return <Unreachable refusal={refusal} />;
  return (
    <Page title={text('entry.confirmEmail.title')}>
      {email === undefined ? (
        <p aria-busy="true">{text('common.oneMoment')}</p>
      ) : (
        <>
          <p>{markup('entry.confirmEmail.explanation', { email: <strong>{email}</strong> })}</p>
          <Form {...form}>
            <Button isBusy={isBusy} busy={text('entry.confirmEmail.busy')}>
              {text('entry.confirmEmail.submit')}
            </Button>
          </Form>
        </>
      )}
    </Page>
  );
}

function LogInFirst() {
  return (
    <Page title={text('entry.confirmEmail.logInFirst.title')} isNews>
      <p>{text('entry.confirmEmail.logInFirst.explanation')}</p>
      <p>
        <a class="primary button" href={pagePaths.logIn} onClick={() => rememberPage(String(mailedLink()))}>
          {text('entry.logIn.action')}
        </a>
      </p>
    </Page>
  );
}

function Changed() {
  return (
    <Page title={text('entry.confirmEmail.changed.title')} isNews>
      <p>{text('entry.confirmEmail.changed.explanation')}</p>
      <p>
        <a class="primary button" href={pagePaths.security}>
          {text('entry.confirmEmail.changed.toAccount')}
        </a>
      </p>
    </Page>
  );
}

function Refused() {
  return (
    <LinkRefused>
      <p>{text('entry.confirmEmail.refused')}</p>
      <p>
        <a class="primary button" href={pagePaths.security}>
          {text('entry.newLink')}
        </a>
      </p>
    </LinkRefused>
  );
}
