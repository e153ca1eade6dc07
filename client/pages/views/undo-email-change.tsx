import { pagePaths } from '../../../server/page-paths.ts';
import { api } from '../api.ts';
import { Button, Form } from '../form/form.tsx';
import { useMailedLink } from '../mailed-link.ts';
import { Page } from '../page.tsx';
import { text } from '../texts.ts';
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
    <Page title={text('entry.undoEmailChange.title')}>
      <p>{text('entry.undoEmailChange.explanation')}</p>
      <Form {...form}>
        <Button isBusy={isBusy} busy={text('entry.undoEmailChange.busy')}>
          {text('entry.undoEmailChange.submit')}
        </Button>
      </Form>
    </Page>
  );
}

function Undone() {
  return (
    <Page title={text('entry.undoEmailChange.undone.title')} isNews>
      <p>{text('entry.undoEmailChange.undone.explanation')}</p>
      <p>
        <a class="primary button" href={pagePaths.forgotPassword}>
          {text('entry.resetPassword.title')}
        </a>
      </p>
    </Page>
  );
}

function Refused() {
  return (
    <LinkRefused>
      <p>{text('entry.undoEmailChange.refused')}</p>
      <p class="aside">
        <a href={pagePaths.home}>{text('common.toStart')}</a>
      </p>
    </LinkRefused>
  );
}
