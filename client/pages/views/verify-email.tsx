import type { VerifyEmailOutput } from 'account-client';
import { useState } from 'preact/hooks';
import { pagePaths } from '../../../server/page-paths.ts';
import { api } from '../api.ts';
import { beforeLogin, readDraft } from '../draft.ts';
import { TextField } from '../form/fields.tsx';
import { Button, Form, Notice } from '../form/form.tsx';
import { useForm } from '../form/use-form.ts';
import { dateTime } from '../in-readers-language.ts';
import { mailedLink, useMailedLink } from '../mailed-link.ts';
import { MailboxHint, Page } from '../page.tsx';
import { wayIn } from '../provider-label.ts';
import { LinkRefused } from './link-refused.tsx';

type Unproven = NonNullable<VerifyEmailOutput['unproven']>;

/** The page that the mailed link opens; without a token, the page for users who wait for the mail. */
export function VerifyEmail() {
  return mailedLink().get('token') ? <Confirm /> : <Wait />;
}

function Confirm() {
  const { token, outcome, isRefused, isBusy, form } = useMailedLink({
    initial: {},
    send: (token) => api.auth.verifyEmail.mutate({ token }),
  });
  if (outcome) return <Verified token={token} unproven={outcome.unproven ?? []} />;
  if (isRefused) return <Refused />;
  return (
    <Page title="Verify your email">
      <p>One click, and you can log in.</p>
      <Form {...form}>
        <Button isBusy={isBusy} busy="Verifying …">
          Verify email
        </Button>
      </Form>
    </Page>
  );
}

function Verified({ token, unproven }: { token: string; unproven: Unproven }) {
  const [removed, setRemoved] = useState('');
  if (removed) return <Removed message={removed} />;
  return (
    <Page title="Your email is verified" isNews>
      <p>You can log in now.</p>
      <p>
        <a class="primary button" href={pagePaths.logIn}>
          Log in
        </a>
      </p>
      {unproven.length > 0 && <NotMe token={token} unproven={unproven} onRemoved={setRemoved} />}
    </Page>
  );
}

/**
 * Shown where another browser asked for the account. Shows nothing that was typed there: it may be meant to deceive.
 */
function NotMe({
  token,
  unproven,
  onRemoved,
}: {
  token: string;
  unproven: Unproven;
  onRemoved(message: string): void;
}) {
  const { isBusy, form } = useForm({
    initial: {},
    async send() {
      onRemoved((await api.account.notMe.mutate({ token })).message);
      return undefined;
    },
  });
  return (
    <>
      <h2>Was it you?</h2>
      <p>This account was asked for in another browser:</p>
      <ul>
        {unproven.map(({ method, addedAt }) => (
          <li key={`${method} ${addedAt}`}>
            {wayIn(method)}, {dateTime(addedAt)}
          </li>
        ))}
      </ul>
      <p>
        If it was not you, remove this: nobody can log in with it any more, and every device is logged out. If there is
        no other way to log in, the account is deleted.
      </p>
      <Form {...form}>
        <Button kind="secondary" isBusy={isBusy} busy="Removing …">
          This was not me
        </Button>
      </Form>
    </>
  );
}

function Removed({ message }: { message: string }) {
  return (
    <Page title="Thank you" isNews>
      <p>{message}</p>
      <p class="aside">
        <a href={pagePaths.home}>To the start</a>
      </p>
    </Page>
  );
}

function Refused() {
  return (
    <LinkRefused>
      <p>It is older than a day, has been used, or a newer one took its place. We can send you a new one.</p>
      <Resend />
    </LinkRefused>
  );
}

function Wait() {
  const { email } = readDraft(beforeLogin);
  return (
    <Page title="Check your inbox">
      <p>
        We sent a link to {email ? <strong>{email}</strong> : 'your email'}. Open it to verify your address. It works
        for 24 hours.
      </p>
      <MailboxHint />
      <h2>Nothing there?</h2>
      <p>Look among unwanted mail, or have it sent again.</p>
      <Resend />
      <p class="aside">
        Verified already? <a href={pagePaths.logIn}>Log in</a>
      </p>
    </Page>
  );
}

function Resend() {
  const [message, setMessage] = useState('');
  const { field, isBusy, form } = useForm({
    initial: { email: '' },
    required: { email: 'Please enter your email' },
    draft: { key: beforeLogin, names: ['email'] },
    async send(values) {
      setMessage('');
      setMessage((await api.auth.resendVerification.mutate(values)).message);
      return undefined;
    },
  });
  return (
    <>
      <Form {...form}>
        <TextField field={field('email')} label="Email" type="email" autocomplete="username" />
        <Button kind="secondary" isBusy={isBusy} busy="Sending …">
          Send a new link
        </Button>
      </Form>
      {message && <Notice>{message}</Notice>}
    </>
  );
}
