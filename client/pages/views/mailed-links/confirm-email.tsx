import { useEffect, useState } from 'preact/hooks';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api, refusalIn } from '../../api.ts';
import { Button, Form } from '../../form/form.tsx';
import type { useForm } from '../../form/use-form.ts';
import { markup, text } from '../../language/texts.ts';
import { Page } from '../../page.tsx';
import { tellOfPasskeys } from '../../passkeys.ts';
import { mailedLink, useMailedLink } from '../../session/mailed-link.ts';
import { rememberPage } from '../../session/way-back.ts';
import { Skeleton } from '../skeleton.tsx';
import { Unreachable } from '../unreachable.tsx';
import { LinkOutcome } from './link-outcome.tsx';

/** The page behind the link to a new email. It requires a session of the account, in the browser that requested it. */
export function ConfirmEmail() {
  const [isLoggedOut, setLoggedOut] = useState(false);
  const { outcome, isRefused, isBusy, form } = useMailedLink({
    initial: {},
    async send(token) {
      const answer = await api.account.confirmEmail.mutate({ token });
      void api.profile.get.query().then(
        ({ user }) => tellOfPasskeys(user),
        () => undefined,
      );
      return answer;
    },
    explain({ code }) {
      if (code === 'UNAUTHENTICATED') setLoggedOut(true);
      if (code === 'FORBIDDEN') return { message: text('entry.confirmEmail.elsewhere') };
      return code === 'EMAIL_TAKEN' ? { message: text('entry.confirmEmail.taken') } : undefined;
    },
  });
  if (isLoggedOut)
    return (
      <LinkOutcome
        title={text('entry.confirmEmail.logInFirst.title')}
        explanation={text('entry.confirmEmail.logInFirst.explanation')}
        next={{
          href: pagePaths.logIn,
          label: text('entry.logIn.action'),
          onClick: () => rememberPage(String(mailedLink())),
        }}
      />
    );
  if (outcome)
    return (
      <LinkOutcome
        title={text('entry.confirmEmail.changed.title')}
        explanation={text('entry.confirmEmail.changed.explanation')}
        next={{ href: pagePaths.security, label: text('entry.confirmEmail.changed.toAccount') }}
      />
    );
  if (isRefused)
    return (
      <LinkOutcome
        explanation={text('entry.confirmEmail.refused')}
        next={{ href: pagePaths.security, label: text('entry.newLink') }}
      />
    );
  return <Confirm isBusy={isBusy} form={form} onLoggedOut={() => setLoggedOut(true)} />;
}

interface ConfirmProps extends Pick<ReturnType<typeof useForm>, 'isBusy' | 'form'> {
  onLoggedOut(): void;
}

/** Names the account: the browser may be logged in to another one than expected. */
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
        <Skeleton />
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
