import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Config } from '../../config/index.ts';
import { sentenceOf } from '../../log.ts';
import { type Check, type Finding, isAboutTls, ok, problem, warning } from './finding.ts';

/** An address that no client has (RFC 5737), for a request that pretends to be another's. */
const FORGED = '192.0.2.1';

/**
 * Whether APP_URL leads here, and how many proxies are on the way. Where the service does not run, a server in its place sees
 * what arrives; it answers 503 to all but the doctor's own request, so that no balancer takes it for the service.
 */
export const checkAddress: Check = async function* (config) {
  // Not a probe: those are often closed to the public.
  const path = `/api/health?doctor=${randomUUID()}`;
  let forwardedFor: string | undefined;
  const server = await listen(config, (url, header) => {
    if (url !== path) return false;
    forwardedFor = header;
    return true;
  });
  try {
    const response = await fetch(config.appUrl + path, { headers: { 'x-forwarded-for': FORGED } });
    const body = await response.text();
    if (server && forwardedFor !== undefined) {
      yield ok(`${config.appUrl} leads to this machine`);
      yield proxyFinding(forwardedFor, config.trustedProxies);
    } else if (body.includes('"db":')) {
      yield ok(`${config.appUrl} leads to the service. Proxies are counted only while nothing listens on PORT`);
    } else if (response.status >= 500) {
      yield warning(
        `${config.appUrl} answers ${response.status}`,
        'start the service, and point the proxy at HOST and PORT',
      );
    } else {
      yield problem(
        `${config.appUrl} leads to something else (GET /api/health: ${response.status})`,
        'APP_URL must be the address at which browsers reach this service, without a path of its own',
      );
    }
  } catch (error) {
    const reason = sentenceOf(error);
    yield isAboutTls(reason)
      ? problem(
          `${config.appUrl} has no valid certificate: ${reason}`,
          'renew it, with all certificates between it and its authority',
        )
      : warning(`${config.appUrl} does not answer: ${reason}`, 'start proxy and service; its name must be in the DNS');
  } finally {
    server?.closeAllConnections();
    server?.close();
  }
};

/** Undefined where the port is taken, by the service in all probability. */
async function listen(
  { port, host }: Config,
  isExpected: (url: string, forwardedFor: string) => boolean,
): Promise<Server | undefined> {
  const server = createServer(({ url = '', headers }, response) => {
    response.writeHead(isExpected(url, String(headers['x-forwarded-for'] ?? '')) ? 200 : 503).end();
  });
  try {
    await once(server.listen(port, host), 'listening');
    return server;
  } catch {
    return undefined;
  }
}

function proxyFinding(forwardedFor: string, trusted: number): Finding {
  if (forwardedFor === '') {
    return problem(
      'a proxy in front takes X-Forwarded-For away and writes none: all clients would share its address, and so the limits',
      'let it append the address of its client to X-Forwarded-For',
    );
  }
  const entries = forwardedFor.split(',').map((entry) => entry.trim());
  // A proxy appends the address that it was called from, or writes the header anew.
  const proxies = entries.length - 1 - entries.lastIndexOf(FORGED);
  if (proxies === trusted) return ok(`TRUST_PROXY=${trusted} counts the proxies in front`);
  const text = `TRUST_PROXY is ${trusted}, and ${proxies} proxies in front wrote to X-Forwarded-For`;
  const remedy = `set TRUST_PROXY=${proxies}, if clients come the same way as this request`;
  // Too many: a client writes its own address. Too few: all share that of a proxy, and so the limits.
  return problem(text, remedy);
}
