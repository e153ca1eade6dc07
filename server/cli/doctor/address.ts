import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../config/index.ts';
import { sentenceOf } from '../../telemetry/log.ts';
import { type Check, type Finding, isAboutTls, ok, problem, warning } from './finding.ts';

/** An address that no client has (RFC 5737), for a request with a forged X-Forwarded-For. */
const FORGED = '192.0.2.1';
/** How long a proxy may skip an instance that was down: nginx does so for five seconds (docs/deploy). */
const PASSED_OVER_MS = 7000;

/**
 * Checks that APP_URL leads here, and counts the proxies. If the service is down, a temporary server receives the
 * request; it sends 503 to all others, so that no balancer uses it.
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
    const ask = () => fetch(config.appUrl + path, { headers: { 'x-forwarded-for': FORGED } });
    const end = performance.now() + PASSED_OVER_MS;
    let response = await ask();
    while (server && response.status >= 500 && performance.now() < end) {
      await delay(500);
      response = await ask();
    }
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
        'APP_URL must be the URL at which browsers reach this service, without a path',
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

/** Undefined if the port is taken, probably by the service. */
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
      'a proxy in front removes X-Forwarded-For and sets none: all clients would share its address, and so the limits',
      'configure it to append the address of its client to X-Forwarded-For',
    );
  }
  const entries = forwardedFor.split(',').map((entry) => entry.trim());
  // A proxy appends the address of its client, or replaces the header.
  const proxies = entries.length - 1 - entries.lastIndexOf(FORGED);
  if (proxies === trusted) return ok(`TRUST_PROXY=${trusted} counts the proxies in front`);
  const text = `TRUST_PROXY is ${trusted}, and ${proxies} proxies in front wrote to X-Forwarded-For`;
  const remedy = `set TRUST_PROXY=${proxies}, if clients come the same way as this request`;
  // Too many: a client can forge its address. Too few: all clients share a proxy's address, and so its limits.
  return problem(text, remedy);
}
