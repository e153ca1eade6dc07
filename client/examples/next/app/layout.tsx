import { AccountProvider, SignedOut, UserButton } from 'account-client/react';
import { headers } from 'next/headers';
import type { ReactNode } from 'react';
import { accounts, accountsUrl } from '../accounts.ts';
import { LogIn } from './log-in.tsx';

export const metadata = { title: 'Example' };

/** The server knows the session, so the first paint is final. */
export default async function Layout({ children }: { children: ReactNode }) {
  const session = await accounts.sessionOf(await headers());
  return (
    <html lang="en">
      <body>
        <AccountProvider url={accountsUrl} initialSession={session}>
          <header>
            <UserButton />
            <SignedOut>
              <LogIn />
            </SignedOut>
          </header>
          {children}
        </AccountProvider>
      </body>
    </html>
  );
}
