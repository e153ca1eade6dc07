import { pagePaths } from '../../../server/page-paths.ts';
import { api, type Refusal } from '../api.ts';
import { beforeLogin, keepDraft } from '../draft.ts';
import { CheckBox, PasswordField, TextField } from '../form/fields.tsx';
import { Button, Form } from '../form/form.tsx';
import { unmetRules } from '../form/password-rules.ts';
import { type FieldState, type Problem, useForm } from '../form/use-form.ts';
import { mailedLink, useMailedLink } from '../mailed-link.ts';
import { Page } from '../page.tsx';
import { addressHint, isOpenToNew, reason } from '../registration.tsx';
import { settings } from '../settings.ts';
import { LinkRefused } from './link-refused.tsx';
import { ProviderLinks } from './provider-links.tsx';
import { AcceptTerms, hasTerms } from './terms.tsx';

/** For users who were invited by mail, and for all others as far as they are let in. */
export function Register() {
  const isInvited = mailedLink().get('token') !== null && settings.registration.mode !== 'closed';
  if (isInvited) return <Invited />;
  return isOpenToNew ? <Open /> : <Closed />;
}

const required = {
  name: 'Please enter your name',
  email: 'Please enter your email',
  password: 'Please choose a password',
  ...(hasTerms && { acceptTerms: 'Please tick this box to create an account' }),
};

function explain({ code, details }: Refusal): Problem<'email'> | undefined {
  if (details['acceptTerms'] && !hasTerms) {
    return { message: 'There are terms to accept. Please load this page again.' };
  }
  if (code === 'REGISTRATION_CLOSED') return { field: 'email', message: reason };
  if (code !== 'EMAIL_TAKEN') return undefined;
  return {
    field: 'email',
    message: (
      <>
        This email has an account already. <a href={pagePaths.logIn}>Log in instead</a>
      </>
    ),
  };
}

function Open() {
  const { field, isBusy, form } = useForm({
    initial: { name: '', email: '', password: '', acceptTerms: '' },
    required,
    check: ({ password }) => unmetRules({ password }),
    draft: { key: beforeLogin, names: ['name', 'email'] },
    async send({ acceptTerms, ...person }) {
      await api.auth.register.mutate({ ...person, acceptTerms: acceptTerms !== '' });
      location.assign(pagePaths.verifyEmail);
      return undefined;
    },
    explain,
  });
  return (
    <Page title="Create your account">
      <ProviderLinks />
      <Form {...form}>
        <TextField field={field('name')} label="Name" autocomplete="name" />
        <TextField field={field('email')} label="Email" type="email" autocomplete="username" hint={addressHint} />
        <PasswordField field={field('password')} label="Password" isNew />
        {hasTerms && <TermsBox field={field('acceptTerms')} />}
        <Button isBusy={isBusy} busy="Creating account …">
          Create account
        </Button>
      </Form>
      <LogInInstead />
    </Page>
  );
}

function Invited() {
  const email = mailedLink().get('email') ?? '';
  const { outcome, isRefused, field, isBusy, form } = useMailedLink({
    initial: { name: '', email, password: '', acceptTerms: '' },
    required,
    check: ({ password }) => unmetRules({ password }),
    async send(invitation, { acceptTerms, ...person }) {
      const given = { ...person, email, invitation, acceptTerms: acceptTerms !== '' };
      const created = await api.auth.register.mutate(given);
      keepDraft(beforeLogin, { email });
      return created;
    },
    explain,
  });
  if (outcome) return <Created />;
  if (isRefused || !email) return <Refused />;
  return (
    <Page title="Create your account">
      <p>You are invited. With this email you need not confirm it again.</p>
      <ProviderLinks />
      <Form {...form}>
        <TextField field={field('name')} label="Name" autocomplete="name" />
        <TextField field={field('email')} label="Email" type="email" autocomplete="username" readonly />
        <PasswordField field={field('password')} label="Password" isNew />
        {hasTerms && <TermsBox field={field('acceptTerms')} />}
        <Button isBusy={isBusy} busy="Creating account …">
          Create account
        </Button>
      </Form>
      <LogInInstead />
    </Page>
  );
}

function TermsBox({ field }: { field: FieldState }) {
  return (
    <CheckBox field={field}>
      <AcceptTerms />
    </CheckBox>
  );
}

function Created() {
  return (
    <Page title="Your account is ready" isNews>
      <p>You can log in now.</p>
      <p>
        <a class="primary button" href={pagePaths.logIn}>
          Log in
        </a>
      </p>
    </Page>
  );
}

function Refused() {
  return (
    <LinkRefused>
      <p>
        It is incomplete, older than 7 days, has been used or revoked, or a newer one took its place. Ask the person who
        invited you for another one.
      </p>
      <LogInInstead />
    </LinkRefused>
  );
}

function Closed() {
  return (
    <Page title="Registration is closed">
      <p>{reason}</p>
      {settings.registration.mode === 'invited' && <p>Open the link in your invitation to create yours.</p>}
      <LogInInstead />
    </Page>
  );
}

function LogInInstead() {
  return (
    <p class="aside">
      You have an account? <a href={pagePaths.logIn}>Log in</a>
    </p>
  );
}
