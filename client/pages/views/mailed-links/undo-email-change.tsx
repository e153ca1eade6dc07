import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api } from '../../api.ts';
import { Button, Form } from '../../form/form.tsx';
import { text } from '../../language/texts.ts';
import { Page } from '../../page.tsx';
import { useMailedLink } from '../../session/mailed-link.ts';
import { KeptMethods } from './kept-methods.tsx';
import { LinkOutcome } from './link-outcome.tsx';

/** The page behind the link mailed to a former email. */
export function UndoEmailChange() {
  const { outcome, isRefused, isBusy, form } = useMailedLink({
    initial: {},
    send: (token) => api.account.undoEmailChange.mutate({ token }),
  });
  if (outcome)
    return (
      <LinkOutcome
        title={text('entry.undoEmailChange.undone.title')}
        explanation={text('entry.undoEmailChange.undone.explanation')}
        next={{ href: pagePaths.forgotPassword, label: text('entry.resetPassword.title') }}
      >
        <KeptMethods kept={outcome.kept} />
      </LinkOutcome>
    );
  if (isRefused) return <LinkOutcome explanation={text('entry.undoEmailChange.refused')} />;
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
