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
    language: () => undefined,
    requestId: () => '',
    sessionToken: undefined,
    session: undefined,
    deviceCookie: undefined,
    pendingLogin: undefined,
    stateCookie: () => undefined,
    isFromOurPages: () => true,
    isNavigation: () => false,
    ownUrl: () => '',
    returnAddress: () => undefined,
    browser: newBrowserId,
    cookies: {
      setSession: () => undefined,
      clearSession: () => undefined,
      setState: () => undefined,
      clearState: () => undefined,
      setBrowser: () => undefined,
      setDevice: () => undefined,
      setPending: () => undefined,
      clearPending: () => undefined,
    },
    setLogUser: () => undefined,
    setLogService: () => undefined,
    setStatus: () => undefined,
  });
