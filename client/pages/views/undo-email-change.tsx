import { pagePaths } from '../../../server/page-paths.ts';
import { api } from '../api.ts';
import { Button, Form } from '../form/form.tsx';
import { useMailedLink } from '../mailed-link.ts';
import { Page } from '../page.tsx';
import { LinkRefused } from './link-refused.tsx';

/** The page that the link to a former address opens. */
export function UndoEmailChange() {
  const { outcome, isRefused, isBusy, form } = useMailedLink({
    initial: {},
    send: (token) => api.account.undoEmailChange.mutate({ token }),
  });
  if (outcome) return <Undone />;
  if (isRefused) return <Refused />;
  return (
    <Page title="Undo the change of your email">
      <p>
        Your account gets the email back to which we sent the link. Every device is logged out, and the password no
        longer works, because another person may know it: you set a new one afterwards.
      </p>
      <Form {...form}>
        <Button isBusy={isBusy} busy="Undoing …">
          Undo the change
        </Button>
      </Form>
    </Page>
  );
}

function Undone() {
  return (
    <Page title="Your email is back" isNews>
      <p>Every device is logged out. Please set a new password now: we mail you a link for that.</p>
      <p>
        <a class="primary button" href={pagePaths.forgotPassword}>
          Set a new password
        </a>
      </p>
    </Page>
  );
}

function Refused() {
  return (
    <LinkRefused>
      <p>It is incomplete, older than 7 days, or the change was undone already.</p>
      <p class="aside">
        <a href={pagePaths.home}>To the start</a>
      </p>
    </LinkRefused>
  );
}
