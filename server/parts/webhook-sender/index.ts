import { lookup } from 'node:dns/promises';
import { type IncomingMessage, Agent as PlainAgent, request as plainRequest } from 'node:http';
import { Agent, type RequestOptions, request as tlsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import pLimit from 'p-limit';
import type { Config } from '../../config/index.ts';
import { createAddressCheck } from './addresses.ts';
import { MAX_URL, type SendError, type WebhookRequest, type WebhookResponse, type WebhookSender } from './contract.ts';

const DEADLINE_MS = 15_000;
const MAX_READ = 64 * 1024;
const MAX_ANSWER = 1000;
/** Look-ups block threads that other parts need too: those of a dead name server must not take them all. */
const MAX_LOOKUPS = 4;

interface Address {
  address: string;
  family: number;
}

/** Every address of a name. */
export type Resolve = (hostname: string) => Promise<Address[]>;

const resolveName: Resolve = (hostname) => lookup(hostname, { all: true, order: 'verbatim' });

class Refusal extends Error {
  readonly error: SendError;

  constructor(error: SendError, cause?: unknown) {
    super(error, { cause });
    this.error = error;
  }
}

type Settings = Pick<Config, 'production' | 'webhooks'>;

/**
 * Sends to URLs that administrators have entered (OWASP: server-side request forgery). A name is resolved once; all its
 * addresses must be allowed, and only they are connected to. Redirects and proxies of the environment are not followed.
 */
export function createWebhookSender({ production, webhooks }: Settings, resolve: Resolve = resolveName): WebhookSender {
  const isAllowed = createAddressCheck(webhooks.allowed);
  const closing = new AbortController();
  // Not kept alive: each delivery connects to addresses that were just checked. TLS sessions are resumed.
  const agents = { 'http:': new PlainAgent({ keepAlive: false }), 'https:': new Agent({ keepAlive: false }) };

  const lookups = pLimit(MAX_LOOKUPS);
  const underWay = new Map<string, Promise<Address[]>>();
  /** Concurrent deliveries to a name share its look-up. */
  const resolveOnce = (hostname: string): Promise<Address[]> => {
    const found = underWay.get(hostname) ?? lookups(() => resolve(hostname)).finally(() => underWay.delete(hostname));
    underWay.set(hostname, found);
    return found;
  };

  const addressesOf = async (hostname: string): Promise<[Address, ...Address[]]> => {
    const family = isIP(hostname);
    const addresses = family
      ? [{ address: hostname, family }]
      : await resolveOnce(hostname).catch((error: unknown) => {
          throw new Refusal('unknown-host', error);
        });
    const [first, ...others] = addresses;
    if (!first) throw new Refusal('unknown-host');
    if (!addresses.every(({ address }) => isAllowed(address))) throw new Refusal('forbidden-address');
    return [first, ...others];
  };

  const problemOf: WebhookSender['problemOf'] = (text) => {
    const url = URL.parse(text);
    if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.hash) return 'malformed';
    if (url.href.length > MAX_URL) return 'too-long';
    if (url.protocol === 'http:' && production) return 'not-https';
    if (url.username || url.password) return 'credentials';
    const hostname = hostnameOf(url);
    return isIP(hostname) && !isAllowed(hostname) ? 'forbidden-address' : undefined;
  };

  const post = async ({ url: text, headers, body }: WebhookRequest, signal: AbortSignal): Promise<WebhookResponse> => {
    const problem = problemOf(text);
    if (problem) throw new Refusal(problem === 'forbidden-address' ? problem : 'connection');
    const url = new URL(text);
    const addresses = await inTime(addressesOf(hostnameOf(url)), signal);
    const options: RequestOptions = {
      method: 'POST',
      headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
      lookup: lookupOf(addresses),
      agent: agents[url.protocol as 'http:' | 'https:'],
      signal,
    };
    const request = url.protocol === 'https:' ? tlsRequest(url, options) : plainRequest(url, options);
    const response = await new Promise<IncomingMessage>((resolveWith, reject) => {
      const refuse = () => reject(new Refusal('connection'));
      // An answer 101 is neither a response nor an error.
      request.on('upgrade', (_, socket) => socket.destroy()).on('upgrade', refuse);
      request.on('response', resolveWith).on('error', reject).on('close', refuse);
      request.end(body);
    });
    const answer = await beginningOf(response);
    request.destroy();
    return { status: response.statusCode ?? 0, answer, retryAfter: response.headers['retry-after'] };
  };

  return {
    problemOf,

    async send(request) {
      const deadline = AbortSignal.timeout(DEADLINE_MS);
      try {
        return await post(request, AbortSignal.any([deadline, closing.signal]));
      } catch (error) {
        return { error: deadline.aborted ? 'timeout' : errorOf(error) };
      }
    },

    close: () => closing.abort(),
  };
}

/** Without the brackets of an IPv6 address. */
const hostnameOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');

/** Gives the checked addresses to the connection, which therefore resolves nothing. */
const lookupOf =
  (addresses: [Address, ...Address[]]): LookupFunction =>
  (_hostname, { all }, callback) => {
    const [{ address, family }] = addresses;
    if (all) callback(null, addresses);
    else callback(null, address, family);
  };

const inTime = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> => {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  return Promise.race([promise, aborted]);
};

/** A response is judged by its status: a body that breaks off or takes too long is only cut. */
async function beginningOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk.subarray(0, MAX_READ - size));
      size += chunk.length;
      if (size >= MAX_READ) break;
    }
  } catch {
    // The status has arrived.
  }
  return [...Buffer.concat(chunks).toString('utf8')].slice(0, MAX_ANSWER).join('').trim();
}

const certificateError = /^(?:CERT_|ERR_TLS_CERT|ERR_SSL|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|EPROTO)/;

function errorOf(error: unknown): SendError {
  if (error instanceof Refusal) return error.error;
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && certificateError.test(code) ? 'certificate' : 'connection';
}
