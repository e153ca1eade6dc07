import { isIPv6 } from 'node:net';
import { availableParallelism } from 'node:os';
import type { Config } from '../../config/index.ts';
import { isLoopback } from '../../loopback.ts';
import { authoritiesIn } from '../../start/authorities.ts';
import { exposure } from '../../start/exposure.ts';
import { type Check, type Finding, ok, warning } from './finding.ts';

/** What can be said of settings without a look at any part. */
export const checkSettings: Check = async function* (config) {
  const doubts = config.warnings.map((text) => warning(text, 'see README, “Configuration”'));
  yield* exposure(config).map(ok);
  yield* [...doubts, ...processFindings(config), ...secretFindings(config), ...metricsFindings(config)];
  if (config.caFile !== undefined) yield* authorityFindings(config.caFile);
};

function processFindings({ processes }: Config): Finding[] {
  const cores = availableParallelism();
  return processes > cores
    ? [
        warning(
          `WEB_CONCURRENCY is ${processes}, and this machine has ${cores} cores`,
          `set WEB_CONCURRENCY=${cores}: more processes take memory and connections, and answer no more requests`,
        ),
      ]
    : [];
}

function secretFindings({ appSecrets }: Config): Finding[] {
  return appSecrets && appSecrets.length > 1
    ? [
        warning(
          `APP_SECRET has ${appSecrets.length} secrets, all of which are accepted`,
          'take the old one away a day after every instance has the new one: docs/operations.md, “Rotate secrets”',
        ),
      ]
    : [];
}

function metricsFindings({ metricsPort, metricsHost: host, production }: Config): Finding[] {
  return production && metricsPort !== undefined && !isLoopback(isIPv6(host) ? `[${host}]` : host)
    ? [
        warning(
          `METRICS_PORT ${metricsPort} is open on METRICS_HOST ${host} to every caller who can reach it`,
          'let Prometheus alone through: by a firewall, or by a port that the container does not publish',
        ),
      ]
    : [];
}

/** One that has expired makes every certificate that it signed invalid. */
function authorityFindings(caFile: string): Finding[] {
  const authorities = authoritiesIn(caFile);
  const expired = authorities.filter(({ validToDate }) => validToDate.getTime() < Date.now());
  return expired.length > 0
    ? expired.map(({ subject, validTo }) =>
        warning(
          `CA_FILE: ${subject.replaceAll('\n', ', ')} has expired (${validTo})`,
          'put the new certificate of that authority into CA_FILE',
        ),
      )
    : [ok(`CA_FILE has certificates: ${authorities.length}`)];
}
