import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from './custodian.ts';
import { requireBinary } from './debian.ts';
import { accepts } from './port.ts';
import { type PrivateServer, startPrivateServer } from './private-server.ts';

export interface LoadBalancer extends PrivateServer {
  /** How many instances it sends requests to. */
  instances(): Promise<number>;
}

/**
 * HAProxy in front of instances of the service, one that is not ready left out. It tries a request again only where no connection came about:
 * what was sent may have been done.
 */
export async function startHaproxy({
  port,
  statsPort,
  instancePorts,
}: {
  port: number;
  statsPort: number;
  instancePorts: number[];
}): Promise<LoadBalancer> {
  const binary = requireBinary({ names: ['haproxy'], debianPackage: 'haproxy' });
  const directory = temporaryDirectory('haproxy');
  const file = join(directory, 'haproxy.cfg');
  writeFileSync(file, configuration({ port, statsPort, instancePorts }));
  const server = await startPrivateServer({
    name: 'HAProxy',
    url: `http://127.0.0.1:${port}`,
    port,
    directory,
    command: { file: binary, args: ['-db', '-f', file], env: {} },
    answers: () => accepts(port),
  });
  return Object.assign(server, {
    async instances() {
      const statistics = await (await fetch(`http://127.0.0.1:${statsPort}/;csv`)).text();
      return statistics.split('\n').filter((line) => /^service,instance\d/.test(line) && line.includes(',UP,')).length;
    },
  });
}

/** As the service itself says it. */
const unavailable = JSON.stringify({
  message: 'The service is temporarily unavailable, please try again shortly',
  code: 'SERVICE_UNAVAILABLE',
});

const configuration = (ports: { port: number; statsPort: number; instancePorts: number[] }) => `
defaults
  mode http
  timeout connect 1s
  timeout client 65s
  timeout server 60s
  timeout check 3s
  retries 3
  option redispatch 1
  retry-on conn-failure
${[502, 503, 504].map((status) => `  http-error status ${status} content-type application/json string '${unavailable}'`).join('\n')}

frontend public
  bind 127.0.0.1:${ports.port}
  default_backend service

backend service
  balance roundrobin
  option forwardfor
  option httpchk GET /readyz
  default-server check inter 200ms fall 2 rise 1
${ports.instancePorts.map((port, i) => `  server instance${i} 127.0.0.1:${port}`).join('\n')}

frontend statistics
  bind 127.0.0.1:${ports.statsPort}
  stats enable
  stats uri /
`;
