import type { VerifyEmailOutput } from 'account-client';
import { useState } from 'preact/hooks';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api } from '../../api.ts';
import { CodeField } from '../../form/code-field.tsx';
import { TextField } from '../../form/fields.tsx';
import { Button, Form, Notice } from '../../form/form.tsx';
import { useForm } from '../../form/use-form.ts';
import { dateTime } from '../../language/format.ts';
import { wayIn } from '../../language/provider-label.ts';
import { markup, text } from '../../language/texts.ts';
import { MailboxHint, Page } from '../../page.tsx';
import { beforeLogin, readDraft } from '../../session/draft.ts';
import { mailedLink, useMailedLink } from '../../session/mailed-link.ts';
import { rememberTarget, wayBack } from '../../session/way-back.ts';
import { LinkOutcome } from './link-outcome.tsx';

type Unproven = NonNullable<VerifyEmailOutput['unproven']>;

/** The page behind the mailed link; without a token, the page for users who wait for the mail. */
export function VerifyEmail() {
  return mailedLink().get('token') ? <Confirm /> : <Wait />;
}

function Confirm() {
  const { token, outcome, isRefused, isBusy, form } = useMailedLink({
    initial: {},
    async send(token) {
      const verified = await api.auth.verifyEmail.mutate({ token });
      rememberTarget(verified.returnTo);
      return verified;
    },
  });
  if (outcome) return <Verified token={token} unproven={outcome.unproven ?? []} />;
  if (isRefused)
    return (
      <LinkOutcome explanation={text('entry.verifyEmail.refused')}>
        <Resend />
      </LinkOutcome>
    );
  return (
    <Page title={text('entry.verifyEmail.title')}>
      <p>{text('entry.verifyEmail.explanation')}</p>
      <Form {...form}>
        <Button isBusy={isBusy} busy={text('entry.verifyEmail.busy')}>
          {text('entry.verifyEmail.submit')}
        </Button>
      </Form>
    </Page>
  );
}

/** `token`: of the link, if there are unproven login methods. */
function Verified({ token = '', unproven }: { token?: string; unproven: Unproven }) {
  const [isRemoved, setRemoved] = useState(false);
  if (isRemoved)
    return (
      <LinkOutcome
        title={text('entry.verifyEmail.removed.title')}
        explanation={text('entry.verifyEmail.removed.explanation')}
      />
    );
  return (
    <Page title={text('entry.verifyEmail.verified')} isNews>
      <p>{text('entry.canLogIn')}</p>
      <a class="primary button" href={pagePaths.logIn}>
        {text('entry.logIn.action')}
      </a>
      {unproven.length > 0 && <NotMe token={token} unproven={unproven} onRemoved={() => setRemoved(true)} />}
    </Page>
  );
}

/** Shown if the account was registered in another browser. Omits the registrant's input: it may be phishing. */
function NotMe({ token, unproven, onRemoved }: { token: string; unproven: Unproven; onRemoved(): void }) {
  const { isBusy, form } = useForm({
    initial: {},
    async send() {
      await api.account.notMe.mutate({ token });
      onRemoved();
      return undefined;
    },
  });
  return (
    <>
      <h2>{text('entry.verifyEmail.notMe.title')}</h2>
      <p>{text('entry.verifyEmail.notMe.elsewhere')}</p>
      <ul>
        {unproven.map(({ method, addedAt }) => (
          <li key={`${method} ${addedAt}`}>
            {text('entry.verifyEmail.notMe.added', { way: wayIn(method), time: dateTime(addedAt) })}
          </li>
        ))}
      </ul>
      <p>{text('entry.verifyEmail.notMe.explanation')}</p>
      <Form {...form}>
        <Button kind="secondary" isBusy={isBusy} busy={text('entry.verifyEmail.notMe.busy')}>
          {text('entry.notMe.action')}
        </Button>
      </Form>
    </>
  );
}

function Wait() {
  const { email } = readDraft(beforeLogin);
  const [isVerified, setVerified] = useState(false);
  if (isVerified) return <Verified unproven={[]} />;
  return (
    <Page title={text('entry.checkInbox')}>
      <p>
        {email
          ? markup('entry.verifyEmail.wait.sentTo', { email: <strong>{email}</strong> })
          : text('entry.verifyEmail.wait.sent')}
      </p>
      <MailboxHint />
      <MailedCode onVerified={() => setVerified(true)} />
      {/* Who was not just registered has come for another mail. */}
      <details open={!new URLSearchParams(location.search).has('sent')}>
        <summary>{text('entry.verifyEmail.wait.nothingThere')}</summary>
        <p>{text('entry.verifyEmail.wait.again')}</p>
        <Resend />
      </details>
      <p class="aside">
        {markup('entry.verifyEmail.wait.already', { link: (label) => <a href={pagePaths.logIn}>{label}</a> })}
      </p>
    </Page>
  );
}

/** The code beside the link, for the browser that registered. */
function MailedCode({ onVerified }: { onVerified(): void }) {
  const { field, isBusy, form } = useForm({
    initial: { code: '' },
    required: { code: text('entry.verifyEmail.code.missing') },
    async send({ code }) {
      const verified = await api.auth.verifyEmail.mutate({ code });
      rememberTarget(verified.returnTo);
      onVerified();
      return undefined;
    },
    explain(refusal) {
      if (refusal.code !== 'INVALID_CODE') return undefined;
      field('code').onInput('');
      return { field: 'code', message: text('entry.verifyEmail.code.wrong') };
    },
  });
  return (
    <Form {...form}>
      <CodeField
        field={field('code')}
        label={text('entry.verifyEmail.code.label')}
        submit={() => form.element.current?.requestSubmit()}
      />
      <Button isBusy={isBusy} busy={text('entry.verifyEmail.busy')}>
        {text('entry.verifyEmail.submit')}
      </Button>
    </Form>
  );
}

function Resend() {
  const [isSent, setSent] = useState(false);
  const { field, isBusy, form } = useForm({
    initial: { email: '' },
    required: { email: text('entry.required.email') },
    draft: { key: beforeLogin, names: ['email'] },
    async send(values) {
      setSent(false);
      await api.auth.resendVerification.mutate({ ...values, returnTo: wayBack() });
      setSent(true);
      return undefined;
    },
  });
  return (
    <>
      <Form {...form}>
        <TextField field={field('email')} label={text('common.email')} type="email" autocomplete="username" />
        <Button kind="secondary" isBusy={isBusy} busy={text('common.sending')}>
          {text('entry.verifyEmail.resend.submit')}
        </Button>
      </Form>
      {isSent && <Notice>{text('entry.verifyEmail.resend.sent')}</Notice>}
    </>
  );
}
