import { pagePaths } from '../../../server/page-paths.ts';
import { api } from '../api.ts';
import { Button, Form } from '../form/form.tsx';
import { useMailedLink } from '../mailed-link.ts';
import { MailboxHint, Page } from '../page.tsx';
import { LinkRefused } from './link-refused.tsx';

/** The page that the mail about a login from a new device leads to. */
export function NotMe() {
  const { outcome, isRefused, isBusy, form } = useMailedLink({
    initial: {},
    send: (token) => api.account.notMe.mutate({ token }),
  });
  if (outcome) return <Secured message={outcome.message} />;
  if (isRefused) return <Refused />;
  return (
    <Page title="Was it not you?">
      <p>
        If someone else has logged in to your account, log out every device now. Your password will no longer work, and
        we send you a link to set a new one.
      </p>
      <Form {...form}>
        <Button isBusy={isBusy} busy="Logging out …">
          This was not me
        </Button>
      </Form>
      <p class="aside">If it was you, you need not do anything: nothing has changed.</p>
    </Page>
  );
}

function Secured({ message }: { message: string }) {
  return (
    <Page title="Your account is safe" isNews>
      <p>{message}</p>
      <MailboxHint />
      <p class="aside">
        Nothing there? <a href={pagePaths.forgotPassword}>Ask for another link</a>
      </p>
    </Page>
  );
}

function Refused() {
  return (
    <LinkRefused>
      <p>
        It is older than 7 days, or has been used. If you still fear for your account, set a new password: that logs out
        every device too.
      </p>
      <p>
        <a class="primary button" href={pagePaths.forgotPassword}>
          Set a new password
        </a>
      </p>
    </LinkRefused>
  );
}
