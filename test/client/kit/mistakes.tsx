import { AccountProvider, type Session, UserButton } from 'account-client/react';
import { createAccounts } from 'account-client/server';
import type { SessionStore } from 'account-client/session';

// @ts-expect-error: the address of the service is missing
export const provider = <AccountProvider initialSession={null} />;
// @ts-expect-error: there is no such label
export const button = <UserButton labels={{ logIn: 'Log in' }} />;
// @ts-expect-error: nobody may be logged in
export const nameOf = (session: Session): string => session.user.name;
// @ts-expect-error: the service has no such page
export const page = (store: SessionStore) => store.pageUrl('/nowhere');
// @ts-expect-error: the token of the service is missing
export const accounts = createAccounts({ url: '' });

export const greeting = (session: Session): string => (session.status === 'logged-in' ? session.user.name : 'nobody');
