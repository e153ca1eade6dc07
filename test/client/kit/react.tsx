import { AccountProvider, SignedIn, SignedOut, UserButton, useLogIn, useSession, useUser } from 'account-client/react';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

function Page() {
  const logIn = useLogIn();
  const user = useUser();
  return (
    <>
      <UserButton labels={{ account: 'My account' }}>
        <a href="#orders">Orders</a>
      </UserButton>
      <p>Shop</p>
      <SignedIn>
        <h1>Welcome, {user?.name}</h1>
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
