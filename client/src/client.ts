import {
  createTRPCClient,
  httpBatchLink,
  httpLink,
  isNonJsonSerializable,
  type Operation,
  splitLink,
} from '@trpc/client';
import { within } from './aborts/deadline.ts';
import type { Client } from './api.ts';
import { challengeLink, solutionIn } from './challenge/link.ts';
import type { OnChallenge } from './challenge/on-challenge.ts';
import { errorLink } from './error-link.ts';
import { warnOfOtherSite } from './other-site.ts';
import { fetchWithProgress, listeners } from './progress.ts';
import type { AppRouter } from './trpc.ts';
import { type Watcher, watchersOf } from './unauthenticated.ts';

const TIMEOUT_MS = 15_000;
const FILE_TIMEOUT_MS = 120_000;
/** The longest time that the service may hold a call that waits for events. */
const MAX_WAIT_MS = 25_000;

/**
 * The most calls that the service accepts in one request, and the longest URL that every proxy accepts: some refuse
 * 8 KB.
 */
const MAX_BATCH = 10;
const MAX_ADDRESS = 7000;
/** A query with a longer input has a request of its own. */
const MAX_SHARED_INPUT = MAX_ADDRESS / 2;

type Headers = Record<string, string>;

export interface ClientOptions {
  /** Base URL of the service, such as `https://accounts.example.com`; `''` on pages that the service serves. */
  url: string;
  /** Replaces the global fetch. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Sent with every call. A function is called before each request. */
  headers?: Headers | (() => Headers | Promise<Headers>) | undefined;
  /**
   * For programs: an access key or token, sent with every call instead of cookies. It is called before each request, so
   * it may return another one.
   */
  token?: (() => string | Promise<string>) | undefined;
  /**
   * Called when a call must wait for a proof of work (CHALLENGE), with a promise that settles when it is solved. The
   * client solves it by itself.
   */
  onChallenge?: OnChallenge | undefined;
  /** False: a call that needs a proof of work rejects with CHALLENGE_REQUIRED, for a server that passes it on. Default: true. */
  solveChallenges?: boolean | undefined;
  /** Milliseconds until a call times out; default 15000. */
  timeout?: number | undefined;
  /** Milliseconds until a call with a file times out; default 120000. */
  fileTimeout?: number | undefined;
}

export interface ServiceClientOptions extends Pick<ClientOptions, 'url' | 'fetch' | 'timeout'> {
  /** From `npm run service-token` at the account service. */
  token: string;
}

/**
 * For front ends, with cookies; for programs, with a `token`. Calls of one tick share a request; a call
 * with a FormData or a signal has one of its own. A call rejects with ServiceError, NetworkError or TimeoutError.
 */
export function createClient({ token, ...options }: ClientOptions): Client {
  if (token) return connect({ ...options, headers: () => withBearer(token, options.headers) }, { credentials: 'omit' });
  warnOfOtherSite(options.url);
  return connect(options, { credentials: 'include' });
}

const withBearer = async (
  token: NonNullable<ClientOptions['token']>,
  headers: ClientOptions['headers'] = {},
): Promise<Headers> => ({
  ...(typeof headers === 'function' ? await headers() : headers),
  authorization: `Bearer ${await token()}`,
});

/** For other services: like `createClient`, but without cookies. `service.*` accepts its token. */
export const createServiceClient = ({ token, ...options }: ServiceClientOptions): Client =>
  connect({ ...options, headers: { authorization: `Bearer ${token}` } });

function connect(
  {
    url,
    headers = {},
    fetch,
    onChallenge,
    solveChallenges = true,
    timeout = TIMEOUT_MS,
    fileTimeout = FILE_TIMEOUT_MS,
  }: ClientOptions,
  init: RequestInit = {},
): Client {
  const linkOptions = (ms: number) => ({
    url: `${url.replace(/\/+$/, '')}/trpc`,
    headers,
    fetch: (input: RequestInfo | URL | string, request: object = {}) => {
      const { signal: ofCaller, body } = request as RequestInit;
      // XMLHttpRequest always sends the cookies of its own origin.
      const send = fetch ?? (init.credentials === 'omit' ? undefined : reporting(body)) ?? globalThis.fetch;
      return within({ ms, signal: ofCaller }, async (signal) => {
        const response = await send(input, { ...request, ...init, signal });
        // Read here, because the deadline is also that of the body.
        const json: unknown = await response.json().catch((cause: unknown) => {
          // Such as the page of a proxy: `errorLink` tells its status.
          throw response.ok || !(cause instanceof SyntaxError) ? cause : Object.assign(cause, { response });
        });
        return Object.assign(response, { json: async () => json });
      });
    },
  });
  const headersNow = async (): Promise<Headers> => (typeof headers === 'function' ? headers() : headers);
  const unsolved = splitLink({
    condition: ({ input }) => isNonJsonSerializable(input),
    true: httpLink(linkOptions(fileTimeout)),
    false: splitLink({
      condition: isWaiting,
      true: httpLink(linkOptions(timeout + MAX_WAIT_MS)),
      false: splitLink({
        condition: (op) => isLongRead(op) || isAbortable(op),
        true: httpLink(linkOptions(timeout)),
        false: httpBatchLink({ ...linkOptions(timeout), maxItems: MAX_BATCH, maxURLLength: MAX_ADDRESS }),
      }),
    }),
  });
  const watchers = new Set<Watcher>();
  const client = createTRPCClient<AppRouter>({
    links: [
      errorLink(url, watchers),
      ...(solveChallenges ? [challengeLink(onChallenge)] : []),
      splitLink({
        condition: (op) => solutionIn(op) !== undefined,
        true: httpLink({ ...linkOptions(timeout), headers: async ({ op }) => withSolution(await headersNow(), op) }),
        false: unsolved,
      }),
    ],
  });
  watchersOf.set(client, watchers);
  return client;
}

/** A call of its own: its batch would share the header. */
const withSolution = (headers: Headers, op: Parameters<typeof solutionIn>[0]): Headers => ({
  ...headers,
  'challenge-solution': solutionIn(op) ?? '',
});

/** For a body with a progress listener, if the browser can report progress. */
function reporting(body: unknown): typeof globalThis.fetch | undefined {
  const onProgress = body instanceof FormData ? listeners.get(body) : undefined;
  return onProgress && 'XMLHttpRequest' in globalThis ? fetchWithProgress(onProgress) : undefined;
}

/** A call that waits would keep the others of its batch waiting. */
const isWaiting = ({ input }: { input: unknown }): boolean =>
  typeof input === 'object' && input !== null && 'waitSeconds' in input && Number(input.waitSeconds) > 0;

/** A batch is aborted with the last of its calls. */
const isAbortable = ({ signal }: Pick<Operation, 'signal'>): boolean => signal != null;

/** The input of a query goes into the URL. */
const isLongRead = ({ type, input }: { type: string; input: unknown }): boolean =>
  type === 'query' && encodeURIComponent(JSON.stringify(input) ?? '').length > MAX_SHARED_INPUT;
