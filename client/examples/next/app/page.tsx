import { SignedIn, SignedOut } from 'account-client/react';
import { ProfilePage } from './profile-page.tsx';

export default function Home() {
  return (
    <main>
      <SignedIn>
        <ProfilePage />
      </SignedIn>
      <SignedOut>
        <h1>Welcome</h1>
      </SignedOut>
    </main>
  );
}
