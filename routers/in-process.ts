import { newBrowserId } from '../server/accounts/browsers.ts';
import type { Context } from './context.ts';
import { createCaller } from './index.ts';

/**
 * The procedures without HTTP, for code that runs in this process as the service `name`: it has no session, and cookies
 * and statuses that procedures set are ignored. Rejects with TRPCError, whose `cause` is the ServiceError.
 */
export const inProcessCaller = (
  name: string,
  parts: Pick<Context, 'accounts' | 'uploads' | 'pingDatabase' | 'version'>,
) =>
  createCaller({
    ...parts,
    service: name,
    clientAddress: () => 'in process',
    userAgent: () => '',
    sessionToken: undefined,
    session: undefined,
    stateCookie: () => undefined,
    ownUrl: () => '',
    browser: newBrowserId,
    cookies: {
      setSession: () => undefined,
      clearSession: () => undefined,
      setState: () => undefined,
      clearState: () => undefined,
      setBrowser: () => undefined,
    },
    setLogUser: () => undefined,
    setLogService: () => undefined,
    setStatus: () => undefined,
  });
