import { isServiceError } from 'account-client';
import { accounts, pageOfService } from './accounts.ts';
import { Form } from './form.tsx';

export function LogIn({ onDone }: { onDone: () => Promise<void> }) {
  const logIn = async ({ email = '', password = '' }: Record<string, string>) => {
    try {
      await accounts.auth.login.mutate({ email, password });
    } catch (error) {
      if (!isServiceError(error, 'SECOND_FACTOR_REQUIRED')) throw error;
      location.assign(pageOfService('/second-factor'));
      return;
    }
    await onDone();
  };

  return (
    <>
      <Form
        title="Log in"
        fields={{
          email: { label: 'Email', type: 'email', autoComplete: 'username' },
          password: { label: 'Password', type: 'password', autoComplete: 'current-password' },
        }}
        submit="Log in"
        send={logIn}
      />
      <p>
        <a href={pageOfService('/login')}>Other ways to log in</a>,{' '}
        <a href={pageOfService('/forgot-password')}>forgot your password?</a>
      </p>
    </>
  );
}
