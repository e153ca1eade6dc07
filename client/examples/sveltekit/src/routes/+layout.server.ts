import { accounts, accountsUrl } from '../accounts.server.ts';

/** The server knows the session, so the first paint is final. */
export const load = async ({ request }: { request: Request }) => ({
  accountsUrl,
  session: await accounts.sessionOf(request),
});
