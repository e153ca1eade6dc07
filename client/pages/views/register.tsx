import { pagePaths } from '../../../server/shared/page-paths.ts';
import { api, type Refusal } from '../api.ts';
import { wrongAddress } from '../form/address-rule.ts';
import { CheckBox, PasswordField, TextField } from '../form/fields.tsx';
import { Button, Form } from '../form/form.tsx';
import {
  missingFields,
  nameOf,
  newValues,
  OwnField,
  type OwnName,
  requiredFields,
  textsOf,
} from '../form/own-fields.tsx';
import { unmetRules } from '../form/password-rules.ts';
import { type FieldState, type Problem, useForm } from '../form/use-form.ts';
import { markup, text } from '../language/texts.ts';
import { Page } from '../page.tsx';
import { addressHint, isOpenToNew, reason } from '../registration.tsx';
import { beforeLogin, dropFromDraft, keepDraft } from '../session/draft.ts';
import { leaving } from '../session/leaving.ts';
import { mailedLink, useMailedLink } from '../session/mailed-link.ts';
import { rememberTarget, wayBack } from '../session/way-back.ts';
import { settings } from '../settings.ts';
import { ProviderLinks } from './login/provider-links.tsx';
import { LinkOutcome } from './mailed-links/link-outcome.tsx';
import { AcceptTerms, hasTerms } from './terms.tsx';

/** For invited users, and for all others who may register. */
export function Register() {
  const isInvited = mailedLink().get('token') !== null && settings.registration.mode !== 'closed';
  if (isInvited) return <Invited />;
  return isOpenToNew ? <Open /> : <Closed />;
}

const required = {
  name: text('entry.required.name'),
  email: text('entry.required.email'),
  password: text('entry.required.newPassword'),
  ...(hasTerms && { acceptTerms: text('entry.required.acceptTerms') }),
  ...missingFields(),
};

function explain({ code, details }: Refusal): Problem<'email'> | undefined {
  if (details['acceptTerms']) {
    return { message: hasTerms ? text('entry.register.changedTerms') : text('entry.register.newTerms') };
  }
  if (code === 'REGISTRATION_CLOSED') return { field: 'email', message: reason };
  if (code !== 'EMAIL_TAKEN') return undefined;
  return {
    field: 'email',
    message: markup('entry.register.taken', { link: (label) => <a href={pagePaths.logIn}>{label}</a> }),
  };
}

/** A refusal of the service would come only after these, one after the other. */
const faults = ({ name, email, password }: Record<'name' | 'email' | 'password', string>) => ({
  ...wrongName(name),
  ...wrongAddress({ email }),
  ...unmetRules({ password }),
});

const wrongName = (name: string): { name?: string } =>
  [...name.trim()].length < 2 ? { name: text('common.rules.too_short', { limit: 2 }) } : {};

/** Kept while the user registers, and no longer. */
const ownNames = requiredFields.map(nameOf);

type Typed = Record<'name' | 'email' | 'password' | 'acceptTerms' | OwnName, string>;

const nothing: Typed = { name: '', email: '', password: '', acceptTerms: '', ...textsOf(requiredFields) };

/** With what the ticked box states: the terms that were shown and accepted. */
const personIn = ({ name, email, password, acceptTerms, ...own }: Typed) => ({
  name,
  email,
  password,
  ...(requiredFields.length > 0 && { fields: newValues(own) }),
  acceptTerms: acceptTerms !== '',
  termsVersion: settings.termsVersion,
});

function Open() {
  const { field, isBusy, form } = useForm({
    initial: nothing,
    required,
    check: faults,
    draft: { key: beforeLogin, names: ['name', 'email', ...ownNames] },
    async send(typed) {
      await api.auth.register.mutate({ ...personIn(typed), returnTo: wayBack() });
      dropFromDraft(beforeLogin, ownNames);
      location.assign(`${pagePaths.verifyEmail}?sent`);
      await leaving();
      return undefined;
    },
    explain,
  });
  return (
    <Page title={text('entry.register.title')}>
      <ProviderLinks />
      <Form {...form}>
        <TextField field={field('name')} label={text('entry.register.name')} autocomplete="name" />
        <TextField
          field={field('email')}
          label={text('common.email')}
          type="email"
          autocomplete="username"
          hint={addressHint}
        />
        <RestOfForm field={field} isBusy={isBusy} />
      </Form>
      <LogInInstead />
    </Page>
  );
}

function Invited() {
  const email = mailedLink().get('email') ?? '';
  const { outcome, isRefused, field, isBusy, form } = useMailedLink({
    initial: { ...nothing, email } as Typed,
    required,
    check: ({ name, password }) => ({ ...wrongName(name), ...unmetRules({ password }) }),
    draft: { key: beforeLogin, names: ['name', ...ownNames] },
    async send(invitation, typed) {
      const input = { ...personIn(typed), email, invitation };
      const created = await api.auth.register.mutate(input);
      keepDraft(beforeLogin, { email });
      dropFromDraft(beforeLogin, ownNames);
      rememberTarget(created.returnTo);
      return created;
    },
    explain,
  });
  if (outcome) return <Created />;
  if (isRefused || !email) return <Refused />;
  return (
    <Page title={text('entry.register.title')}>
      <p>{text('entry.register.invited')}</p>
      <ProviderLinks />
      <Form {...form}>
        <TextField field={field('name')} label={text('entry.register.name')} autocomplete="name" />
        <TextField field={field('email')} label={text('common.email')} type="email" autocomplete="username" readonly />
        <RestOfForm field={field} isBusy={isBusy} />
      </Form>
      <LogInInstead />
    </Page>
  );
}

interface RestProps {
  field(name: keyof Typed): FieldState;
  isBusy: boolean;
}

/** What follows the name and the address. */
function RestOfForm({ field, isBusy }: RestProps) {
  return (
    <>
      <PasswordField
        field={field('password')}
        label={text('common.password')}
        isNew
        about={[field('name').value, field('email').value]}
      />
      {requiredFields.map((own) => (
        <OwnField key={own.name} of={own} field={field(nameOf(own))} />
      ))}
      {hasTerms && <TermsBox field={field('acceptTerms')} />}
      <Button isBusy={isBusy} busy={text('entry.register.busy')}>
        {text('entry.register.submit')}
      </Button>
    </>
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
    <LinkOutcome
      title={text('entry.register.created')}
      explanation={text('entry.canLogIn')}
      next={{ href: pagePaths.logIn, label: text('entry.logIn.action') }}
    />
  );
}

function Refused() {
  return (
    <LinkOutcome explanation={text('entry.register.refused')}>
      <LogInInstead />
    </LinkOutcome>
  );
}

function Closed() {
  return (
    <Page title={text('entry.register.closed')}>
      <p>{reason}</p>
      {settings.registration.mode === 'invited' && <p>{text('entry.register.openInvitation')}</p>}
      <LogInInstead />
    </Page>
  );
}

function LogInInstead() {
  return (
    <p class="aside">
      {markup('entry.register.haveAccount', { link: (label) => <a href={pagePaths.logIn}>{label}</a> })}
    </p>
  );
}
