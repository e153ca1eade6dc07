import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { replaced } from '../process/document.ts';
import { root } from '../process/service.ts';
import { until } from '../until.ts';
import { temporaryDirectory } from './custodian.ts';
import { requireBinary } from './debian.ts';
import { accepts, freePort } from './port.ts';
import { type PrivateServer, startPrivateServer } from './private-server.ts';

export interface DeployedProxy extends PrivateServer {
  /** Its URL for plain http. */
  readonly plainUrl: string;
  /** The file of its configuration. */
  readonly configuration: string;
  /** The instances in use, with their current requests. Undefined for nginx, which does not report them. */
  instances(): Promise<Map<string, number> | undefined>;
  /** The content of its log file. Undefined if it logs to the system. */
  log(): string | undefined;
  /** nginx removes an instance before it stops, HAProxy does so by itself; undefined: both use both again. */
  useWithout(instancePort: number | undefined): Promise<unknown>;
}

interface Place {
  port: number;
  instancePorts: [number, number];
  /** PEM files. */
  certificate: { cert: string; key: string };
}

export const proxyNames = ['nginx', 'HAProxy'] as const;

/**
 * nginx or HAProxy with its configuration in docs/deploy, in front of two instances, as https://localhost:port. It replaces
 * only the name, ports and paths that docs/deploy/README.md tells deployers to replace, and system-wide paths.
 */
export async function startDeployedProxy(name: (typeof proxyNames)[number], place: Place): Promise<DeployedProxy> {
  const directory = temporaryDirectory(name);
  const plainPort = await freePort();
  const { file, args, text, logFile, instances } = await { nginx, HAProxy }[name]({ ...place, plainPort, directory });
  const configuration = join(directory, 'proxy.cfg');
  writeFileSync(configuration, text);
  const server = await startPrivateServer({
    name,
    url: `https://localhost:${place.port}`,
    port: place.port,
    directory,
    command: { file, args, env: {} },
    answers: () => accepts(place.port),
  });
  return Object.assign(server, {
    plainUrl: `http://localhost:${plainPort}`,
    configuration,
    instances,
    log: () => logFile && readFileSync(logFile, 'utf8'),
    async useWithout(instancePort: number | undefined) {
      if (name === 'HAProxy') {
        const isBalanced = async () => (await instances())?.size === 2;
        return instancePort ?? until(isBalanced, { what: 'HAProxy with both instances' });
      }
      const former = childrenOf(server.pid);
      const out = `127.0.0.1:${instancePort} max_fails=1`;
      writeFileSync(configuration, text.replace(out, `${out} down`));
      process.kill(server.pid, 'SIGHUP');
      return until(() => childrenOf(server.pid).every((pid) => !former.includes(pid)), {
        what: 'the end of former workers',
      });
    },
  });
}

const childrenOf = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);

type Installation = Place & { plainPort: number; directory: string };

async function nginx({ port, plainPort, instancePorts, certificate, directory }: Installation) {
  const logFile = join(directory, 'access.log');
  const certificates = '/etc/letsencrypt/live/accounts.example.com';
  return {
    file: await requireBinary({ names: ['nginx'], debianPackage: 'nginx' }),
    args: ['-c', 'proxy.cfg', '-p', directory, '-e', 'stderr', '-g', `daemon off; pid ${join(directory, 'pid')};`],
    logFile,
    instances: async () => undefined,
    text: deployedFile('nginx.conf', {
      [`${certificates}/fullchain.pem`]: certificate.cert,
      [`${certificates}/privkey.pem`]: certificate.key,
      '/var/log/nginx/access.log': logFile,
      '/var/log/nginx/error.log': 'stderr',
      'https://accounts.example.com': `https://localhost:${port}`,
      'server_name accounts.example.com': 'server_name localhost',
      'listen 443': `listen 127.0.0.1:${port}`,
      'listen [::]:443': `listen 127.0.0.2:${port}`,
      'listen 80': `listen 127.0.0.1:${plainPort}`,
      'listen [::]:80': `listen 127.0.0.2:${plainPort}`,
      '127.0.0.1:3001': `127.0.0.1:${instancePorts[0]}`,
      '127.0.0.1:3002': `127.0.0.1:${instancePorts[1]}`,
    }),
  };
}

async function HAProxy({ port, plainPort, instancePorts, certificate, directory }: Installation) {
  const both = join(directory, 'accounts.pem');
  const control = join(directory, 'admin.sock');
  writeFileSync(both, readFileSync(certificate.cert, 'utf8') + readFileSync(certificate.key, 'utf8'));
  return {
    file: await requireBinary({ names: ['haproxy'], debianPackage: 'haproxy' }),
    args: ['-db', '-f', join(directory, 'proxy.cfg')],
    logFile: undefined,
    instances: async () => {
      const rows = (await answerTo('show stat', control)).split('\n').map((line) => line.split(','));
      const used = rows.filter(
        ([backend, name, , , , , , , , , , , , , , , , status]) =>
          backend === 'accounts' && name !== 'BACKEND' && status?.startsWith('UP'),
      );
      return new Map(used.map(([, name = '', , , sessions]) => [name, Number(sessions)]));
    },
    text: deployedFile('haproxy.cfg', {
      '/etc/haproxy/accounts.pem': both,
      '/run/haproxy/admin.sock': control,
      'https://accounts.example.com': `https://localhost:${port}`,
      'bind :443': `bind 127.0.0.1:${port}`,
      'bind :80': `bind 127.0.0.1:${plainPort}`,
      '127.0.0.1:3001': `127.0.0.1:${instancePorts[0]}`,
      '127.0.0.1:3002': `127.0.0.1:${instancePorts[1]}`,
    }),
  };
}

/** HAProxy's answer to a command on its socket. */
const answerTo = (command: string, path: string) => textOf(connect(path).end(`${command}\n`));

/** A file of docs/deploy with replaced values; each must occur. */
export const deployedFile = (file: string, values: Record<string, string>): string =>
  replaced(readFileSync(join(root, 'docs/deploy', file), 'utf8'), values);
