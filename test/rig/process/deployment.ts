import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createAuthority } from '../servers/certificates.ts';
import { temporaryDirectory } from '../servers/custodian.ts';
import { requireBinary } from '../servers/debian.ts';
import { type DeployedProxy, deployedFile, startDeployedProxy } from '../servers/deployed-proxy.ts';
import { startMysql } from '../servers/mysql.ts';
import { freePort } from '../servers/port.ts';
import { type S3, startS3 } from '../servers/s3.ts';
import { type SmtpSink, startSmtpSink } from '../servers/smtp.ts';
import { codeBlocks, expectIn, substituted } from './document.ts';
import { type Commands, startOperatorShell } from './operator-shell.ts';
import { root, type Service, startService } from './service.ts';

const DOCUMENT = 'docs/operations.md';

export interface RunOptions {
  /** Texts in the code blocks, and what the operator writes instead. */
  values?: Record<string, string>;
  /** The operator's edits in `editor`, in order: each maps the current configuration to the new one. */
  edits?: ((configuration: string) => string)[];
  /** Which of the blocks under the heading, like `slice`. */
  blocks?: [from?: number, to?: number];
}

/** The setup of docs/operations.md on this machine: two production instances behind HAProxy, on real parts. */
export interface Deployment {
  /** By the names of their units. */
  readonly instances: ReadonlyMap<string, Service>;
  readonly proxy: DeployedProxy;
  readonly s3: S3;
  readonly smtp: SmtpSink;
  /** The directories that stand for /opt and /var/backups. */
  readonly opt: string;
  readonly backups: string;
  /** A variable of /etc/accounts.env. */
  setting(name: string): Promise<string>;
  /** Runs the document's blocks under a heading in a shell that starts as in “The shell”; resolves to their output. */
  run(heading: string, options?: RunOptions): Promise<string>;
  stop(): Promise<void>;
}

export interface DeploymentOptions {
  /** Further variables of /etc/accounts.env. */
  variables?: Record<string, string>;
  /** What answers at DATABASE_URL: a server or a cluster of them. */
  startDatabase?(): Promise<{ url: string; stop(): Promise<unknown> }>;
  /** What `systemctl restart mariadb` does on the machine of a new node; resolves to that, which `mariadb` then asks. */
  restartDatabase?(): Promise<{ url: string }>;
}

/** `redis`: REDIS_URL, and REDIS_SENTINEL if there is one. */
export async function startDeployment(
  redis: Record<string, string>,
  { variables = {}, startDatabase = startMysql, restartDatabase }: DeploymentOptions = {},
): Promise<Deployment> {
  const directory = temporaryDirectory('deployment');
  const [configurationFile, opt, backups] = ['accounts.env', 'opt', 'backups'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(opt);
  mkdirSync(backups);
  symlinkSync(root, join(opt, 'accounts'));

  const running: { stop(): Promise<unknown> }[] = [];
  const started = async <T extends { stop(): Promise<unknown> }>(part: Promise<T>): Promise<T> => {
    running.unshift(await part);
    return part;
  };
  const instances = new Map<string, Service>();
  const stop = async () => {
    await Promise.all([...instances.values()].map((service) => service.stop({ by: 'SIGINT' })));
    for (const part of running) await part.stop();
  };

  try {
    const ports = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
    const [port, first, second, third] = ports;
    const authority = await createAuthority();
    const [database, s3, smtp, certificate] = await Promise.all([
      started(startDatabase()),
      started(startS3({ cors: true })),
      started(startSmtpSink()),
      authority.issue('localhost'),
    ]);
    const proxy = await started(startDeployedProxy('HAProxy', { port, instancePorts: [first, second], certificate }));

    const places = {
      '/etc/accounts.env': configurationFile,
      '/etc/haproxy/haproxy.cfg': proxy.configuration,
      '/opt/accounts': join(opt, 'accounts'),
      '/var/backups': backups,
      3001: String(first),
      3002: String(second),
      3003: String(third),
    };

    /** A script stops at a failure only if it says so. */
    const asProgram = (script: string) => {
      const file = join(directory, 'script');
      writeFileSync(file, script, { mode: 0o700 });
      return file;
    };
    let edits: RunOptions['edits'];
    const commands: Commands = {
      async systemctl(verb = '', ...args) {
        const units = args.filter((arg) => !arg.startsWith('--'));
        for (const name of units.flatMap((unit) => (unit === 'accounts@*' ? [...instances.keys()] : [unit]))) {
          if (name === 'haproxy') await proxy.restart();
          else if (name === 'mariadb') askDatabaseAt(new URL((await restartDatabase?.())?.url ?? ''));
          else await toInstance(verb, name);
        }
      },
      async editor(file = '') {
        const edit = edits?.shift();
        if (!edit) throw new Error('the test has nothing to edit here');
        writeFileSync(file, edit(readFileSync(file, 'utf8')));
      },
      // Reuses the packages and pages that are here already.
      async 'npm ci'(tree = '') {
        for (const name of ['node_modules', 'client/pages/dist']) symlinkSync(join(root, name), join(tree, name));
      },
      async 'npm prune'() {},
    };
    const toInstance = async (verb: string, name: string): Promise<unknown> => {
      const instance = instances.get(name);
      if (verb === 'stop') return instance?.stop();
      const env = { ...(await variablesIn(configurationFile)), PORT: name.replace('accounts@', '') };
      // Resolved now: a running process stays where it was started.
      const tree = realpathSync(join(opt, 'accounts'));
      return instance ? instance.restart({ env, tree }) : instances.set(name, await startService({ env, tree }));
    };
    const [, databaseHosts = ''] = /@([^/]*)/.exec(database.url) ?? [];
    const askDatabaseAt = ({ hostname: host, port, username: user, password }: URL) =>
      writeFileSync(join(directory, '.my.cnf'), `[client]\n${linesOf({ host, port, user, password })}`);
    askDatabaseAt(new URL(database.url.split(',')[0] ?? ''));
    const links = {
      mariadb: await requireBinary({ names: ['mariadb', 'mysql'], debianPackage: 'mariadb-client' }),
      'mariadb-dump': await requireBinary({ names: ['mariadb-dump', 'mysqldump'], debianPackage: 'mariadb-client' }),
    };
    const shell = await started(startOperatorShell({ home: directory, commands, links }));

    const changed = deployedFile('accounts.env', {
      'https://accounts.example.com': proxy.url,
      'APP_SECRET=SECRET': `APP_SECRET=${randomBytes(32).toString('base64')}`,
      'accounts:PASSWORD@127.0.0.1:3306': `accounts:PASSWORD@${databaseHosts}`,
      'REDIS_URL=redis://:PASSWORD@127.0.0.1:6379\n': linesOf(redis),
      'smtps://USER:PASSWORD@mail.example.com': smtp.url.replace('//', '//USER:PASSWORD@'),
      'https://s3.example.com': s3.url,
      'S3_BUCKET=BUCKET': `S3_BUCKET=${s3.bucket}`,
      'S3_ACCESS_KEY=KEY': `S3_ACCESS_KEY=${s3.env.S3_ACCESS_KEY}`,
      'S3_SECRET_KEY=SECRET': `S3_SECRET_KEY=${s3.env.S3_SECRET_KEY}`,
      'API_HOST=s3.example.com': `API_HOST=${new URL(s3.url).host}`,
    });
    writeFileSync(configurationFile, `${changed}${linesOf({ CA_FILE: authority.ca, ...variables })}`);
    for (const sql of codeBlocks(DOCUMENT, 'Set up', 'sql')) await shell.execute(`mariadb <<'END'\n${sql}END\n`);
    await shell.execute(`systemctl start accounts@${first} accounts@${second}`);

    return {
      instances,
      proxy,
      s3,
      smtp,
      opt,
      backups,
      setting: async (name) => (await variablesIn(configurationFile))[name] ?? '',
      async run(heading, { values = {}, edits: steps = [], blocks = [] } = {}) {
        edits = [...steps];
        const own = codeBlocks(DOCUMENT, heading)
          .slice(...blocks)
          .join('');
        for (const value of Object.keys(values)) expectIn(own, value);
        const inPlace = (script: string) => substituted(script, { ...places, ...values });
        const printed = await shell.execute(
          own.startsWith('#!') ? asProgram(inPlace(own)) : inPlace(codeBlocks(DOCUMENT, 'The shell').join('') + own),
        );
        if (edits.length > 0) throw new Error(`“${heading}” opens no editor any more`);
        return printed;
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const linesOf = (values: object) =>
  Object.entries(values)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');

/** Parses a file of variables like systemd and the document's shell. */
async function variablesIn(file: string): Promise<Record<string, string>> {
  const script = 'set -a; . "$0"; exec env -0';
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', script, file], {
    env: { PATH: process.env['PATH'] },
  });
  const lines = stdout.split('\0').filter((line) => /^[A-Z]\w+=/.test(line) && !/^(?:PATH|PWD|SHLVL)=/.test(line));
  return Object.fromEntries(lines.map((line) => [line.split('=', 1)[0], line.slice(line.indexOf('=') + 1)]));
}
