import { AccountProvider, type InitialSession, useLogOut, useSessionStore, useUser } from 'account-client/react';
import { useState } from 'react';
import { createRoot } from 'react-dom/client';

const url = new URLSearchParams(location.search).get('service') ?? '';

function Buttons() {
  const logOut = useLogOut();
  const { refresh } = useSessionStore();
  return (
    <>
      <button type="button" onClick={() => void refresh()}>
        Check
      </button>
      <button type="button" onClick={() => void logOut()}>
        Log out
      </button>
    </>
  );
}

const Name = () => <h1>{useUser()?.name ?? 'Nobody'}</h1>;

/** As a framework whose server renders the page again, such as after a login in an action. */
function App() {
  const [{ session }, render] = useState<{ session: InitialSession }>({ session: null });
  const user = { id: 'user_1', name: 'Ada' } as NonNullable<InitialSession>['user'];
  return (
    <AccountProvider url={url} initialSession={session}>
      <Name />
      <button type="button" onClick={() => render({ session: { user } })}>
        Render again
      </button>
      <button type="button" onClick={() => render({ session: null })}>
        Render nobody
      </button>
      <Buttons />
    </AccountProvider>
  );
}

createRoot(document.body.appendChild(document.createElement('main'))).render(<App />);
