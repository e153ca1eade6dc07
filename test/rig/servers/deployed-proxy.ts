import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { temporaryDirectory } from './custodian.ts';
import { requireBinary } from './debian.ts';
import { accepts, freePort } from './port.ts';
import { type PrivateServer, startPrivateServer } from './private-server.ts';
import { root } from './service.ts';
import { until } from './until.ts';

export interface DeployedProxy extends PrivateServer {
  /** Where it answers over plain http. */
  readonly plainUrl: string;
  /** What its log file has. Undefined for one that logs to the system. */
  log(): string | undefined;
  /** Takes an instance out before it stops, as docs/deploy/README.md says; undefined: uses both. Resolves once that is so. */
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
 * nginx or HAProxy with its configuration in docs/deploy, in front of two instances, as https://localhost:port. Replaced are
 * only the name, ports and paths that docs/deploy/README.md says a deployer replaces, and where a system has one place for all.
 */
export async function startDeployedProxy(name: (typeof proxyNames)[number], place: Place): Promise<DeployedProxy> {
  const directory = temporaryDirectory(name);
  const plainPort = await freePort();
  const { file, args, text, logFile, isBalanced } = { nginx, HAProxy }[name]({ ...place, plainPort, directory });
  writeFileSync(join(directory, 'proxy.cfg'), text);
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
    log: () => logFile && readFileSync(logFile, 'utf8'),
    async useWithout(instancePort: number | undefined) {
      if (name === 'HAProxy') return instancePort ?? until(isBalanced, { what: 'HAProxy with both instances' });
      const former = childrenOf(server.pid);
      const out = `127.0.0.1:${instancePort} max_fails=0`;
      writeFileSync(join(directory, 'proxy.cfg'), text.replace(out, `${out} down`));
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

function nginx({ port, plainPort, instancePorts, certificate, directory }: Installation) {
  const logFile = join(directory, 'access.log');
  const certificates = '/etc/letsencrypt/live/accounts.example.com';
  return {
    file: requireBinary({ names: ['nginx'], debianPackage: 'nginx' }),
    args: ['-c', 'proxy.cfg', '-p', directory, '-e', 'stderr', '-g', `daemon off; pid ${join(directory, 'pid')};`],
    logFile,
    isBalanced: async () => true,
    text: replaced('nginx.conf', {
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

function HAProxy({ port, plainPort, instancePorts, certificate, directory }: Installation) {
  const both = join(directory, 'accounts.pem');
  const control = join(directory, 'admin.sock');
  writeFileSync(both, readFileSync(certificate.cert, 'utf8') + readFileSync(certificate.key, 'utf8'));
  return {
    file: requireBinary({ names: ['haproxy'], debianPackage: 'haproxy' }),
    args: ['-db', '-f', join(directory, 'proxy.cfg')],
    logFile: undefined,
    isBalanced: async () =>
      (await answerTo('show stat', control)).match(/^accounts,(?:one|two),.*,UP,/gm)?.length === 2,
    text: replaced('haproxy.cfg', {
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

/** What HAProxy says to a command on its socket. */
const answerTo = (command: string, path: string) => textOf(connect(path).end(`${command}\n`));

/** A file of docs/deploy with other values, each of which must be there. */
function replaced(file: string, values: Record<string, string>): string {
  const original = readFileSync(join(root, 'docs/deploy', file), 'utf8');
  return Object.entries(values).reduce((text, [value, other]) => {
    if (!original.includes(value)) throw new Error(`docs/deploy/${file} has no ${value}`);
    return text.replaceAll(value, other);
  }, original);
}
