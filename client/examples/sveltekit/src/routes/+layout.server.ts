import { accounts, accountsUrl } from '../accounts.server.ts';

/** The server knows the session, so the first paint is final. */
export const load = async ({ request, setHeaders }: { request: Request; setHeaders(headers: object): void }) => {
  // Nobody reads it by the button Back after a logout.
  setHeaders({ 'cache-control': 'no-store' });
  return { accountsUrl, session: await accounts.sessionOf(request) };
};
