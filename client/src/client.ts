import { createTRPCClient, httpBatchLink, httpLink, isNonJsonSerializable, splitLink } from '@trpc/client';
import type { Client } from './api.ts';
import { errorLink } from './error-link.ts';
import { fetchWithProgress, listeners } from './progress.ts';
import type { AppRouter } from './trpc.ts';

const TIMEOUT_MS = 15_000;
const FILE_TIMEOUT_MS = 120_000;

/**
 * The most calls that the service accepts in one request, and the longest address that every proxy accepts: some refuse
 * 8 KB.
 */
const LARGEST_BATCH = 10;
const LONGEST_ADDRESS = 7000;
/** A read with a longer input has a request of its own. */
const LONGEST_SHARED_INPUT = LONGEST_ADDRESS / 2;

type Headers = Record<string, string>;

export interface ClientOptions {
  /** Base address of the service, such as `https://accounts.example.com`; `''` for pages that it serves itself. */
  url: string;
  /** In place of the global fetch. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Sent with every call; a function is called before each request. */
  headers?: Headers | (() => Headers | Promise<Headers>) | undefined;
  /** Milliseconds until a call times out; 15000. */
  timeout?: number | undefined;
  /** The same for calls that carry a file; 120000. */
  fileTimeout?: number | undefined;
}

export interface ServiceClientOptions extends Pick<ClientOptions, 'url' | 'fetch' | 'timeout'> {
  /** From `npm run service-token` at the account service. */
  token: string;
}

/**
 * For front ends. Cookies go along; calls of one tick share a request, calls with a FormData have one of their own. A call
 * rejects with ServiceError, NetworkError or TimeoutError.
 */
export const createClient = (options: ClientOptions): Client => connect(options, { credentials: 'include' });

/** For other services: like `createClient`, but without cookies, and `service.*` accepts its token. */
export const createServiceClient = ({ token, ...options }: ServiceClientOptions): Client =>
  connect({ ...options, headers: { authorization: `Bearer ${token}` } });

function connect(
  { url, headers = {}, fetch, timeout = TIMEOUT_MS, fileTimeout = FILE_TIMEOUT_MS }: ClientOptions,
  init: RequestInit = {},
): Client {
  const linkOptions = (ms: number) => ({
    url: `${url.replace(/\/+$/, '')}/trpc`,
    headers,
    fetch: (input: RequestInfo | URL | string, request: object = {}) => {
      const { signal, body } = request as RequestInit;
      const timer = AbortSignal.timeout(ms);
      const send = fetch ?? reporting(body) ?? globalThis.fetch;
      return send(input, { ...request, ...init, signal: signal ? AbortSignal.any([signal, timer]) : timer });
    },
  });
  return createTRPCClient<AppRouter>({
    links: [
      errorLink(url),
      splitLink({
        condition: ({ input }) => isNonJsonSerializable(input),
        true: httpLink(linkOptions(fileTimeout)),
        false: splitLink({
          condition: isLongRead,
          true: httpLink(linkOptions(timeout)),
          false: httpBatchLink({ ...linkOptions(timeout), maxItems: LARGEST_BATCH, maxURLLength: LONGEST_ADDRESS }),
        }),
      }),
    ],
  });
}

/** For a body whose progress is wanted, where the browser can tell of it. */
function reporting(body: unknown): typeof globalThis.fetch | undefined {
  const onProgress = body instanceof FormData ? listeners.get(body) : undefined;
  return onProgress && 'XMLHttpRequest' in globalThis ? fetchWithProgress(onProgress) : undefined;
}

/** The input of a read goes into the address. */
const isLongRead = ({ type, input }: { type: string; input: unknown }): boolean =>
  type === 'query' && encodeURIComponent(JSON.stringify(input) ?? '').length > LONGEST_SHARED_INPUT;
