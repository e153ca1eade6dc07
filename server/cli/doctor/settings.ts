import { isIPv6 } from 'node:net';
import { availableParallelism } from 'node:os';
import type { Config } from '../../config/index.ts';
import { authoritiesIn } from '../../process/authorities.ts';
import { exposure } from '../../process/exposure.ts';
import { isLoopback } from '../../shared/loopback.ts';
import { type Check, type Finding, ok, warning } from './finding.ts';

/** Checks settings without a connection to any part. */
export const checkSettings: Check = async function* (config) {
  const doubts = config.warnings.map((text) => warning(text, 'see docs/configuration.md'));
  yield* exposure(config).map(({ text, remedy }) => (remedy === undefined ? ok(text) : warning(text, remedy)));
  yield* [...doubts, ...processFindings(config), ...secretFindings(config), ...metricsFindings(config)];
  if (config.caFile !== undefined) yield* authorityFindings(config.caFile);
};

function processFindings({ processes }: Config): Finding[] {
  const cores = availableParallelism();
  return processes > cores
    ? [
        warning(
          `WEB_CONCURRENCY is ${processes}, and this machine has ${cores} cores`,
          `set WEB_CONCURRENCY=${cores}: more processes take memory and connections without answering more requests`,
        ),
      ]
    : [];
}

function secretFindings({ appSecrets }: Config): Finding[] {
  return appSecrets && appSecrets.length > 1
    ? [
        warning(
          `APP_SECRET has ${appSecrets.length} secrets, and all are accepted`,
          'remove the old one 7 days after every instance has the new one: docs/operations.md, “Rotate secrets”',
        ),
      ]
    : [];
}

function metricsFindings({ metricsPort, metricsHost: host, production }: Config): Finding[] {
  return production && metricsPort !== undefined && !isLoopback(isIPv6(host) ? `[${host}]` : host)
    ? [
        warning(
          `METRICS_PORT ${metricsPort} on METRICS_HOST ${host} is open to everyone who can reach it`,
          'restrict it to Prometheus, by a firewall or by a port that the container does not publish',
        ),
      ]
    : [];
}

/** An expired authority invalidates every certificate that it signed. */
function authorityFindings(caFile: string): Finding[] {
  const authorities = authoritiesIn(caFile);
  const expired = authorities.filter(({ validToDate }) => validToDate.getTime() < Date.now());
  return expired.length > 0
    ? expired.map(({ subject, validTo }) =>
        warning(
          `CA_FILE: ${subject.replaceAll('\n', ', ')} has expired (${validTo})`,
          'add the new certificate of that authority to CA_FILE',
        ),
      )
    : [ok(`CA_FILE has certificates: ${authorities.length}`)];
}
