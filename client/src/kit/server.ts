import type { Client, ServiceSessionOutput } from '../api.ts';
import { createClient } from '../client.ts';
import { createSessionChecker, type SessionCheckerOptions, sessionTokenIn } from '../session-checker.ts';

export interface AccountsOptions extends Omit<SessionCheckerOptions, 'cacheSeconds'> {
  /** COOKIE_DOMAIN of the service, exactly. Otherwise a browser keeps two cookies, and a request with two has no session. */
  cookieDomain?: string | undefined;
  /** Cache time of a session; default 0: a change of the profile is seen by the next request. */
  cacheSeconds?: number | undefined;
}

interface HeaderReader {
  get(name: string): string | null | undefined;
}

interface HeaderRecord {
  readonly [name: string]: string | string[] | undefined;
}

/** A Request, the request of a Node server, or only its headers. */
export type RequestLike =
  | HeaderReader
  | { readonly headers: HeaderReader | HeaderRecord; readonly method?: string | undefined };

/** The request of a Node server. */
interface NodeRequest {
  readonly headers: HeaderRecord;
  readonly method?: string | undefined;
}

/** The response of a Node server. */
interface NodeResponse {
  appendHeader(name: string, value: string): unknown;
  setHeader(name: string, value: string): unknown;
  writeHead(status: number, headers: Record<string, string>): unknown;
  end(body: string): unknown;
}

export type ServerSession = NonNullable<ServiceSessionOutput>;

export interface Accounts {
  /** The session of a request, or null. One check for each request. Rejects like a call. */
  sessionOf(this: void, request: RequestLike): Promise<ServerSession | null>;
  /**
   * A client that acts for the user of a request. `setCookie` gets each Set-Cookie line of the service for the response,
   * such as that of a logout. Check the Origin of the request first: the service sees a program.
   */
  clientOf(this: void, request: RequestLike, setCookie: (line: string) => void): Client;
  /** For a handler from Request to Response: Next, SvelteKit, workers. */
  answer(this: void, request: Request, handle: () => Response | Promise<Response>): Promise<Response>;
  /** For a Node server: true if the request is answered. */
  node(this: void, request: NodeRequest, response: NodeResponse): Promise<boolean>;
  express(this: void, request: NodeRequest, response: NodeResponse, next: () => void): Promise<void>;
  koa(this: void, ctx: { req: NodeRequest; res: NodeResponse }, next: () => Promise<unknown>): Promise<void>;
  /** For `defineEventHandler` of Nuxt. */
  nuxt(this: void, event: { node: { req: NodeRequest; res: NodeResponse } }): Promise<void>;
  hono(this: void, context: HonoContext, next: () => Promise<void>): Promise<Response | undefined>;
}

interface HonoContext {
  readonly req: { readonly raw: Request };
  readonly res: Response;
  header(name: string, value: string, options?: { append: true }): void;
}

/**
 * The sessions of the requests to a server that renders pages. What wraps a request (`answer`, `node` and the named
 * frameworks) sets the cookie of a renewed session, and answers the first request after a link from another site, without
 * its Strict cookie, by a page that loads itself again.
 */
export function createAccounts({ cacheSeconds = 0, cookieDomain, ...options }: AccountsOptions): Accounts {
  const { url } = options;
  const checker = createSessionChecker({ cacheSeconds, ...options });
  const attributes = `Path=/; HttpOnly; SameSite=Strict${cookieDomain ? `; Domain=${cookieDomain}` : ''}${
    url.startsWith('https:') ? '; Secure' : ''
  }`;
  /** By request, so that the middleware and the page share a check. */
  const checks = new WeakMap<object, Promise<ServiceSessionOutput>>();

  const sessionOf = (request: RequestLike): Promise<ServiceSessionOutput> => {
    const check = checks.get(request) ?? checker.checkCookies(headerOf(request, 'cookie'));
    checks.set(request, check);
    return check;
  };

  /** The line that keeps the cookie of a renewed session. A failed check is the handler's: many pages need no session. */
  const renewal = async (request: RequestLike): Promise<string | undefined> => {
    const found = await sessionOf(request).catch(() => null);
    if (!found?.fresh) return undefined;
    const seconds = found.session.expiresAt - Math.floor(Date.now() / 1000);
    return `auth_session=${tokenOf(request)}; Max-Age=${seconds}; ${attributes}`;
  };

  const node = async (request: NodeRequest, response: NodeResponse): Promise<boolean> => {
    const isAnswered = isFirstArrival(request);
    if (isAnswered) {
      response.writeHead(200, arrivalHeaders);
      response.end(arrivalPage);
    } else {
      const line = await renewal(request);
      // A handler may replace both; a cache must not store the cookie.
      if (line) {
        response.appendHeader('Set-Cookie', line);
        response.setHeader('Cache-Control', 'no-store');
      }
    }
    return isAnswered;
  };

  return {
    sessionOf,
    clientOf(request, setCookie) {
      const headers = {
        cookie: headerOf(request, 'cookie'),
        'accept-language': headerOf(request, 'accept-language') || '*',
      };
      const { fetch = globalThis.fetch, timeout } = options;
      return createClient({
        url,
        headers,
        timeout,
        async fetch(...call) {
          const response = await fetch(...call);
          for (const line of response.headers.getSetCookie()) setCookie(line);
          return response;
        },
      });
    },
    async answer(request, handle) {
      if (isFirstArrival(request)) return new Response(arrivalPage, { headers: arrivalHeaders });
      const line = await renewal(request);
      const response = await handle();
      if (!line || setsSession(response)) return response;
      // The headers of some responses, such as redirects, cannot be changed.
      const renewed = new Response(response.body, response);
      renewed.headers.append('Set-Cookie', line);
      renewed.headers.set('Cache-Control', 'no-store');
      return renewed;
    },
    node,
    async express(request, response, next) {
      if (!(await node(request, response))) next();
    },
    async koa({ req, res }, next) {
      if (!(await node(req, res))) await next();
    },
    async nuxt({ node: { req, res } }) {
      await node(req, res);
    },
    async hono(context, next) {
      const { raw } = context.req;
      if (isFirstArrival(raw)) return new Response(arrivalPage, { headers: arrivalHeaders });
      const line = await renewal(raw);
      await next();
      if (!line || setsSession(context.res)) return undefined;
      context.header('Set-Cookie', line, { append: true });
      context.header('Cache-Control', 'no-store');
      return undefined;
    },
  };
}

const arrivalPage =
  '<!doctype html><meta name="color-scheme" content="light dark"><meta http-equiv="refresh" content="0"><title>…</title>';

const arrivalHeaders = { 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-store' };

/** The handler has logged out, or got another session for the user: its cookie stays. */
const setsSession = ({ headers }: Response): boolean =>
  headers.getSetCookie().some((line) => line.startsWith('auth_session='));

/** Browsers omit a Strict cookie on the first request after a link from another site. */
const isFirstArrival = (request: NodeRequest | Request): boolean =>
  request.method === 'GET' &&
  headerOf(request, 'sec-fetch-site') === 'cross-site' &&
  headerOf(request, 'sec-fetch-dest') === 'document' &&
  tokenOf(request) === '';

const tokenOf = (request: RequestLike): string => sessionTokenIn(headerOf(request, 'cookie'));

function headerOf(request: RequestLike, name: string): string {
  const headers = 'headers' in request ? request.headers : request;
  const value = isReader(headers) ? headers.get(name) : headers[name];
  return Array.isArray(value) ? value.join('; ') : (value ?? '');
}

const isReader = (headers: HeaderReader | HeaderRecord): headers is HeaderReader => typeof headers.get === 'function';
