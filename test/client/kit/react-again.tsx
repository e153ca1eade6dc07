import { AccountProvider, type InitialSession, useLogOut, useUser } from 'account-client/react';
import { useState } from 'react';
import { createRoot } from 'react-dom/client';

const url = new URLSearchParams(location.search).get('service') ?? '';

function LogOut() {
  const logOut = useLogOut();
  return (
    <button type="button" onClick={() => void logOut()}>
      Log out
    </button>
  );
}

const Name = () => <h1>{useUser()?.name ?? 'Nobody'}</h1>;

/** As a framework whose server renders the page again, such as after a login in an action. */
function App() {
  const [rendered, render] = useState<InitialSession>(null);
  const user = { id: 'user_1', name: 'Ada' } as NonNullable<InitialSession>['user'];
  return (
    <AccountProvider url={url} initialSession={rendered}>
      <Name />
      <button type="button" onClick={() => render({ user })}>
        Render again
      </button>
      <LogOut />
    </AccountProvider>
  );
}

createRoot(document.body.appendChild(document.createElement('main'))).render(<App />);
