import { pagePaths } from '../../../server/page-paths.ts';
import { api } from '../api.ts';
import { beforeLogin } from '../draft.ts';
import { PasswordField, TextField } from '../form/fields.tsx';
import { Button, Form } from '../form/form.tsx';
import { unmetRules } from '../form/password-rules.ts';
import { useForm } from '../form/use-form.ts';
import { Page } from '../page.tsx';
import { ProviderLinks } from './provider-links.tsx';

export function Register() {
  const { field, isBusy, form } = useForm({
    initial: { name: '', email: '', password: '' },
    required: {
      name: 'Please enter your name',
      email: 'Please enter your email',
      password: 'Please choose a password',
    },
    check: ({ password }) => unmetRules({ password }),
    draft: { key: beforeLogin, names: ['name', 'email'] },
    async send({ name, email, password }) {
      await api.auth.register.mutate({ name, email, password });
      location.assign(pagePaths.verifyEmail);
      return undefined;
    },
    explain: ({ code }) =>
      code === 'EMAIL_TAKEN'
        ? {
            field: 'email',
            message: (
              <>
                This email has an account already. <a href={pagePaths.logIn}>Log in instead</a>
              </>
            ),
          }
        : undefined,
  });
  return (
    <Page title="Create your account">
      <ProviderLinks />
      <Form {...form}>
        <TextField field={field('name')} label="Name" autocomplete="name" />
        <TextField field={field('email')} label="Email" type="email" autocomplete="username" />
        <PasswordField field={field('password')} label="Password" isNew />
        <Button isBusy={isBusy} busy="Creating account …">
          Create account
        </Button>
      </Form>
      <p class="aside">
        You have an account? <a href={pagePaths.logIn}>Log in</a>
      </p>
    </Page>
  );
}
