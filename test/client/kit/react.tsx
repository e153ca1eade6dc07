import {
  AccountProvider,
  SignedIn,
  SignedOut,
  UserButton,
  useLogIn,
  useSession,
  useSessionStore,
  useUser,
} from 'account-client/react';
import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';

function Page() {
  const logIn = useLogIn();
  const user = useUser();
  const { client } = useSessionStore();
  const [account, setAccount] = useState('My account');
  return (
    <>
      <UserButton labels={{ account }}>
        <a href="#orders">Orders</a>
        <button type="button" onClick={() => setAccount('Mein Konto')}>
          Deutsch
        </button>
      </UserButton>
      <p>Shop</p>
      <SignedIn>
        <h1>Welcome, {user?.name}</h1>
        <button type="button" onClick={() => void client.sessions.list.query().catch(() => undefined)}>
          Devices
        </button>
      </SignedIn>
      <SignedOut>
        <h1>Welcome</h1>
        <button type="button" onClick={() => logIn()}>
          Log in
        </button>
      </SignedOut>
      <Failure />
    </>
  );
}

const Failure = () => Boolean(useSession().error) && <p role="alert">Offline</p>;

const url = new URLSearchParams(location.search).get('service') ?? '';
createRoot(document.body.appendChild(document.createElement('main'))).render(
  <StrictMode>
    <AccountProvider url={url}>
      <Page />
    </AccountProvider>
  </StrictMode>,
);
