import { useState } from 'preact/hooks';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api, refusalIn } from '../../api.ts';
import { wrongAddress } from '../../form/address-rule.ts';
import { CodeField } from '../../form/code-field.tsx';
import { TextField } from '../../form/fields.tsx';
import { Alert, Button, Form } from '../../form/form.tsx';
import { useForm } from '../../form/use-form.ts';
import { markup, text } from '../../language/texts.ts';
import { MailboxHint, Page } from '../../page.tsx';
import { isOpenToNew, reason } from '../../registration.tsx';
import { beforeLogin, dropDraft, keepDraft, readDraft } from '../../session/draft.ts';
import { logInAndContinue } from '../../session/log-in-and-continue.ts';
import { rememberTarget, wayBack } from '../../session/way-back.ts';
import { settings } from '../../settings.ts';
import { NotFound } from '../not-found.tsx';
import { RestoreByReset } from './restore.tsx';

/** The draft that says to which address a code was mailed: it survives a look at the mail in another app. */
const MAILED = 'email-code';

/** The code was right, and works once: a reload asks for another. */
const usesUpCode: ReadonlySet<string | undefined> = new Set([
  'SECOND_FACTOR_REQUIRED',
  'ACCOUNT_DELETED',
  'ACCOUNT_BLOCKED',
  'REGISTRATION_CLOSED',
]);

/** A login by a code that is mailed to the user. */
export const EmailCode = () => (settings.emailCodes ? <Steps /> : <NotFound />);

function Steps() {
  const [mailedTo, setMailedTo] = useState(readDraft(MAILED)['email']);
  const [isOver, setOver] = useState(false);
  const [isBack, setBack] = useState(false);
  const goTo = (email: string | undefined, wasOver = false) => {
    if (email === undefined) dropDraft(MAILED);
    else keepDraft(MAILED, { email });
    setMailedTo(email);
    setOver(wasOver);
    setBack(true);
  };
  return mailedTo === undefined ? (
    <Ask isOver={isOver} isNews={isBack} onMailed={(email) => goTo(email)} />
  ) : (
    <Enter email={mailedTo} onAnother={() => goTo(undefined)} onOver={() => goTo(undefined, true)} />
  );
}

interface AskProps {
  /** The code before is no longer valid. */
  isOver: boolean;
  /** Whether it has replaced the field of the code. */
  isNews: boolean;
  onMailed(email: string): void;
}

function Ask({ isOver, isNews, onMailed }: AskProps) {
  const { field, isBusy, form } = useForm({
    initial: { email: '' },
    required: { email: text('entry.required.email') },
    check: wrongAddress,
    draft: { key: beforeLogin, names: ['email'] },
    async send({ email }) {
      await api.auth.beginEmailCode.mutate({ email });
      onMailed(email);
      return undefined;
    },
  });
  return (
    <Page title={text('entry.emailCode.title')} isNews={isNews}>
      {isOver && <Alert>{text('entry.emailCode.over')}</Alert>}
      <p>{text(isOpenToNew ? 'entry.emailCode.explanationForNew' : 'entry.emailCode.explanation')}</p>
      <Form {...form}>
        <TextField field={field('email')} label={text('common.email')} type="email" autocomplete="username" />
        <Button isBusy={isBusy} busy={text('common.sending')}>
          {text('entry.emailCode.send')}
        </Button>
      </Form>
      <p class="aside">
        <a href={pagePaths.logIn}>{text('entry.backToLogIn')}</a>
      </p>
    </Page>
  );
}

interface EnterProps {
  email: string;
  /** The user asks for another code. */
  onAnother(): void;
  /** The code has expired, or was wrong too often. */
  onOver(): void;
}

function Enter({ email, onAnother, onOver }: EnterProps) {
  const { field, isBusy, form } = useForm({
    initial: { code: '' },
    required: { code: text('entry.emailCode.missing') },
    isFocused: true,
    async send({ code }) {
      await logInAndContinue(async () => {
        try {
          const loggedIn = await api.auth.finishEmailCode.mutate({ code });
          dropDraft(MAILED);
          if (wayBack() === undefined) rememberTarget(loggedIn.returnTo);
          return loggedIn;
        } catch (error) {
          if (usesUpCode.has(refusalIn(error).code)) dropDraft(MAILED);
          throw error;
        }
      });
      return undefined;
    },
    explain({ code }) {
      if (code === 'UNAUTHENTICATED') onOver();
      if (code === 'REGISTRATION_CLOSED') return { message: reason };
      if (code === 'ACCOUNT_BLOCKED') return { message: text('entry.logIn.errors.account_blocked') };
      if (code === 'ACCOUNT_DELETED') return { message: <RestoreByReset /> };
      if (code !== 'INVALID_CODE') return undefined;
      field('code').onInput('');
      return { field: 'code', message: text('entry.emailCode.wrong') };
    },
  });

  return (
    <Page title={text('entry.checkInbox')} isNews>
      <p>{markup('entry.emailCode.sentTo', { email: <strong>{email}</strong> })}</p>
      <MailboxHint />
      <Form {...form}>
        <CodeField
          field={field('code')}
          label={text('entry.emailCode.label')}
          submit={() => form.element.current?.requestSubmit()}
        />
        <Button isBusy={isBusy} busy={text('entry.logIn.busy')}>
          {text('entry.logIn.action')}
        </Button>
      </Form>
      <div class="ways">
        <Button kind="secondary" isBusy={false} busy="" onClick={onAnother}>
          {text('entry.emailCode.another')}
        </Button>
      </div>
      <p class="aside">
        <a href={pagePaths.logIn}>{text('entry.backToLogIn')}</a>
      </p>
    </Page>
  );
}
