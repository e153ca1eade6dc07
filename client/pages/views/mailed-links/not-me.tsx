import { pagePaths } from '../../../server/page-paths.ts';
import { api } from '../api.ts';
import { Button, Form } from '../form/form.tsx';
import { useMailedLink } from '../mailed-link.ts';
import { MailboxHint, Page } from '../page.tsx';
import { markup, text } from '../texts.ts';
import { LinkRefused } from './link-refused.tsx';

/** The page that the mail about a login from a new device leads to. */
export function NotMe() {
  const { outcome, isRefused, isBusy, form } = useMailedLink({
    initial: {},
    send: (token) => api.account.notMe.mutate({ token }),
  });
  if (outcome) return <Secured />;
  if (isRefused) return <Refused />;
  return (
    <Page title={text('entry.notMe.title')}>
      <p>{text('entry.notMe.explanation')}</p>
      <Form {...form}>
        <Button isBusy={isBusy} busy={text('common.logOut.busy')}>
          {text('entry.notMe.action')}
        </Button>
      </Form>
      <p class="aside">{text('entry.notMe.ifYou')}</p>
    </Page>
  );
}

function Secured() {
  return (
    <Page title={text('entry.notMe.secured.title')} isNews>
      <p>{text('entry.notMe.secured.explanation')}</p>
      <MailboxHint />
      <p class="aside">
        {markup('entry.notMe.secured.again', { link: (label) => <a href={pagePaths.forgotPassword}>{label}</a> })}
      </p>
    </Page>
  );
}

function Refused() {
  return (
    <LinkRefused>
      <p>{text('entry.notMe.refused')}</p>
      <p>
        <a class="primary button" href={pagePaths.forgotPassword}>
          {text('entry.resetPassword.title')}
        </a>
      </p>
    </LinkRefused>
  );
}
