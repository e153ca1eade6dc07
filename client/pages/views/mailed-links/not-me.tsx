import type { AccountNotMeOutput } from 'account-client';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api } from '../../api.ts';
import { Button, Form } from '../../form/form.tsx';
import { markup, text } from '../../language/texts.ts';
import { MailboxHint, Page } from '../../page.tsx';
import { useMailedLink } from '../../session/mailed-link.ts';
import { KeptMethods } from './kept-methods.tsx';
import { LinkOutcome } from './link-outcome.tsx';

/** The page behind mails about a new device or an added login method. */
export function NotMe() {
  const { outcome, isRefused, isBusy, form } = useMailedLink({
    initial: {},
    send: (token) => api.account.notMe.mutate({ token }),
  });
  if (outcome) return <Secured kept={outcome.kept} />;
  if (isRefused)
    return (
      <LinkOutcome
        explanation={text('entry.notMe.refused')}
        next={{ href: pagePaths.forgotPassword, label: text('entry.resetPassword.title') }}
      />
    );
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

function Secured({ kept }: Pick<AccountNotMeOutput, 'kept'>) {
  return (
    <Page title={text('entry.notMe.secured.title')} isNews>
      <p>{text('entry.notMe.secured.explanation')}</p>
      <MailboxHint />
      <KeptMethods kept={kept} />
      <p class="aside">
        {markup('entry.notMe.secured.again', { link: (label) => <a href={pagePaths.forgotPassword}>{label}</a> })}
      </p>
    </Page>
  );
}
