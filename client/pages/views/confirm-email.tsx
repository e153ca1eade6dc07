import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../../server/page-paths.ts';
import { api, refusalIn } from '../api.ts';
import { Button, Form } from '../form/form.tsx';
import type { useForm } from '../form/use-form.ts';
import { mailedLink, useMailedLink } from '../mailed-link.ts';
import { Page } from '../page.tsx';
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
      return code === 'EMAIL_TAKEN' ? { message: 'This email belongs to another account by now.' } : undefined;
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
    <Page title="Confirm your new email">
      {email === undefined ? (
        <p aria-busy="true">One moment …</p>
      ) : (
        <>
          <p>
            You are logged in as <strong>{email}</strong>. With one click your account has the email to which we sent
            the link instead.
          </p>
          <Form {...form}>
            <Button isBusy={isBusy} busy="Confirming …">
              Confirm email
            </Button>
          </Form>
        </>
      )}
    </Page>
  );
}

function LogInFirst() {
  return (
    <Page title="Please log in first" isNews>
      <p>
        Only you can give your account another email: log in, and you come back here. Or open the link in our mail in
        the browser in which you asked for it.
      </p>
      <p>
        <a class="primary button" href={pagePaths.logIn} onClick={() => rememberPage(String(mailedLink()))}>
          Log in
        </a>
      </p>
    </Page>
  );
}

function Changed() {
  return (
    <Page title="Your email is changed" isNews>
      <p>From now on you log in with it. Your former email got a mail by which you can undo this for 7 days.</p>
      <p>
        <a class="primary button" href={pagePaths.security}>
          To your account
        </a>
      </p>
    </Page>
  );
}

function Refused() {
  return (
    <LinkRefused>
      <p>
        It is incomplete, older than a day, of another account than the one you are logged in to, or a newer one took
        its place.
      </p>
      <p>
        <a class="primary button" href={pagePaths.security}>
          Ask for a new link
        </a>
      </p>
    </LinkRefused>
  );
}
