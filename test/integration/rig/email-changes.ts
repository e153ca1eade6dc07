import { browser, type EmbeddedAccounts, type LoggedIn, request } from './accounts.ts';

/** Requests a change of address. Resolves to the token of its mail. */
export async function askFor(of: EmbeddedAccounts, { user, session }: LoggedIn, email: string): Promise<string> {
  await of.accounts.lifecycle.emailChange.changeEmail(session, email, { caller: request(), browser });
  await of.admit(email);
  const mail = (await of.mailsTo(email)).findLast(({ user_id }) => user_id === user.id);
  return of.derive('confirm-email', mail?.token_id ?? '');
}

export const confirm = (of: EmbeddedAccounts, { session }: LoggedIn, token: string, by = request()) =>
  of.accounts.lifecycle.emailChange.confirmEmail(session, token, { caller: by, browser: by.browser });

/** Changes the address of a user. Resolves to the token that undoes it. */
export async function moved(of: EmbeddedAccounts, who: LoggedIn, email: string): Promise<string> {
  await confirm(of, who, await askFor(of, who, email));
  const [{ id } = { id: '' }] = await of.rowsOf('email_changes', who.user);
  return of.derive('email-changed', String(id));
}
