import { newToken } from '../server/lib/random-token.ts';
import type { Context, Rules } from './context.ts';
import { createCaller } from './index.ts';

/** A request without HTTP: no session, and answers set nothing. */
export const withoutHttp = {
  challengeSolution: () => '',
  expectedUser: () => '',
  userAgent: () => '',
  language: () => undefined,
  requestId: () => '',
  sessionToken: undefined,
  credential: undefined,
  session: undefined,
  scopes: undefined,
  deviceCookie: undefined,
  pendingLogin: undefined,
  stateCookie: () => undefined,
  isAskedOnOurPages: () => true,
  isPage: () => true,
  isNavigation: () => false,
  endOfLogin: () => '',
  ownUrl: () => '',
  returnAddress: () => undefined,
  browser: newToken,
  cookies: {
    setSession: () => undefined,
    forgetSession: () => undefined,
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
  hasArrived: () => true,
  isGone: () => false,
  ended: () => new AbortController().signal,
} satisfies Partial<Context>;

/**
 * The procedures without HTTP, for code in this process as the service `name`. There is no session; cookies and
 * statuses are ignored. Rejects with TRPCError, with the ServiceError as `cause`.
 */
export const inProcessCaller = (name: string, parts: Omit<Rules, 'challenges'> & Pick<Context, 'pingDatabase'>) =>
  createCaller({
    ...withoutHttp,
    ...parts,
    service: name,
    clientAddress: () => 'in process',
    challenges: undefined,
  });
