import { passwordRules } from 'account-client';
import { useState } from 'react';
import { accounts } from './accounts.ts';
import { Form } from './form.tsx';

export function Register() {
  const [password, setPassword] = useState('');
  const [mailed, setMailed] = useState('');

  if (mailed) return <p role="status">{mailed}</p>;
  return (
    <Form
      title="Create your account"
      fields={{
        name: { label: 'Name', type: 'text', autoComplete: 'name' },
        email: { label: 'Email', type: 'email', autoComplete: 'username' },
        password: { label: 'Password', type: 'password', autoComplete: 'new-password' },
      }}
      submit="Create account"
      onInput={(name, value) => name === 'password' && setPassword(value)}
      send={async ({ name = '', email = '', password = '' }) =>
        setMailed((await accounts.auth.register.mutate({ name, email, password })).message)
      }
    >
      <ul>
        {passwordRules.map(({ label, isMet }) => (
          <li key={label}>
            {isMet(password) ? '✓' : '·'} {label}
          </li>
        ))}
      </ul>
    </Form>
  );
}
