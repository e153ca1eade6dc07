'use client';

import { useLogIn } from 'account-client/react';

export function LogIn() {
  const logIn = useLogIn();
  return (
    <button type="button" onClick={() => logIn()}>
      Log in
    </button>
  );
}
