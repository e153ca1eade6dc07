import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api, type Refusal } from '../../api.ts';
import { PasswordField, TextField } from '../../form/fields.tsx';
import { Button, Form } from '../../form/form.tsx';
import { type Problem, useForm } from '../../form/use-form.ts';
import { markup, text } from '../../language/texts.ts';
import { Page } from '../../page.tsx';
import { hasPasskeys } from '../../passkeys.ts';
import { isOpenToNew, RegistrationClosed } from '../../registration.tsx';
import { beforeLogin, dropShownUser } from '../../session/draft.ts';
import { logInAndContinue } from '../../session/log-in-and-continue.ts';
import { settings } from '../../settings.ts';
import { Arrival } from './arrival.tsx';
import { PasskeyLogin } from './passkey-login.tsx';
import { ProviderLinks } from './provider-links.tsx';
import { Restore, RestoreThroughProvider } from './restore.tsx';

export function LogIn() {
  useEffect(dropShownUser, []);
  const { values, field, isBusy, form } = useForm({
    initial: { email: '', password: '' },
    required: { email: text('entry.required.email'), password: text('entry.required.password') },
    draft: { key: beforeLogin, names: ['email'] },
    async send({ email, password }) {
      await logInAndContinue(() => api.auth.login.mutate({ email, password }));
      return undefined;
    },
    explain: (refusal) =>
      refusal.code === 'ACCOUNT_DELETED'
        ? { message: <Restore email={values.email} password={values.password} /> }
        : explain(refusal),
  });
  return (
    <Page title={text('entry.logIn.title')}>
      <Arrival errors={errors} notices={notices} />
      <ProviderLinks>{hasPasskeys && <PasskeyLogin />}</ProviderLinks>
      <Form {...form}>
        <TextField field={field('email')} label={text('common.email')} type="email" autocomplete={fieldOfLogin} />
        <PasswordField field={field('password')} label={text('common.password')} isNew={false} />
        <Button isBusy={isBusy} busy={text('entry.logIn.busy')}>
          {text('entry.logIn.action')}
        </Button>
      </Form>
      {settings.emailCodes && (
        <p class="aside">
          <a href={pagePaths.emailCode}>{text('entry.emailCode.offer')}</a>
        </p>
      )}
      <p class="aside">
        <a href={pagePaths.forgotPassword}>{text('entry.forgotPassword.title')}</a>
      </p>
      {isOpenToNew && (
        <p class="aside">
          {markup('entry.logIn.newHere', { link: (label) => <a href={pagePaths.register}>{label}</a> })}
        </p>
      )}
    </Page>
  );
}

/** This field suggests passkeys. */
const fieldOfLogin = hasPasskeys ? 'username webauthn' : 'username';

function explain({ code }: Refusal): Problem<'email' | 'password'> | undefined {
  if (code === 'INVALID_CREDENTIALS') return { field: 'password', message: text('entry.logIn.wrong') };
  if (code === 'ACCOUNT_BLOCKED') return { message: text('entry.logIn.errors.account_blocked') };
  if (code !== 'EMAIL_NOT_VERIFIED') return undefined;
  const link = (label: string) => <a href={pagePaths.verifyEmail}>{label}</a>;
  return { message: markup('entry.logIn.notVerified', { link }) };
}

/** Why the browser was sent here: `error` is the result of a provider login, `notice` that of another page. */
const errors = new Map<string | null, ComponentChildren>([
  ...(
    [
      'cancelled',
      'email_unverified',
      'identity_not_linked',
      'second_factor_ended',
      'session_ended',
      'account_blocked',
      'account_removed',
      'oauth_failed',
    ] as const
  ).map((error) => [error, text(`entry.logIn.errors.${error}`)] as const),
  ['account_deleted', <RestoreThroughProvider key="restore" />],
  ['registration_closed', <RegistrationClosed key="registration" />],
]);
const notices = new Map<string | null, ComponentChildren>(
  (['logged-out', 'logged-out-everywhere'] as const).map((notice) => [notice, text(`entry.logIn.notices.${notice}`)]),
);
