import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { cp, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createConnection } from 'mysql2/promise';
import { dataDirectory, temporaryDirectory } from './custodian.ts';
import { findBinary } from './debian.ts';
import { freePort } from './port.ts';
import { foreignServer, type PrivateServer, startPrivateServer } from './private-server.ts';

const run = promisify(execFile);
/** The account of the tests on every private server. */
export const databaseAccount = { user: 'rig', password: 'rig-password' };
const { user, password } = databaseAccount;

export const databaseEnv = { PATH: `${process.env.PATH}:/usr/sbin`, LC_ALL: 'C' };
const runsAs = process.getuid?.() === 0 ? ['--user=root'] : [];

/** The server's kind, and the first arguments, which exclude the machine's own configuration. */
export interface Flavour {
  binary: string;
  version: string;
  isMysql: boolean;
  first: string[];
}

/**
 * A private MySQL or MariaDB, the first `mysqld` on the PATH, in an empty `directory`; or the server of MYSQL_URL, an
 * account that may create databases. `args` and `env` extend its options and environment.
 */
export async function startMysql({
  directory = dataDirectory('mysql'),
  args = [],
  env = {},
}: {
  directory?: string;
  args?: string[];
  env?: Record<string, string>;
} = {}): Promise<PrivateServer> {
  const external = process.env.MYSQL_URL;
  if (external) return foreignServer(external, 'MYSQL_URL');
  const flavour = await findFlavour();
  await cp(await initialData(flavour), join(directory, 'data'), { recursive: true, mode: constants.COPYFILE_FICLONE });
  // A server identity that primary and replica must not share.
  await rm(join(directory, 'data/auto.cnf'), { force: true });
  await writeFile(join(directory, 'init.sql'), accountStatements);
  const port = await freePort();
  const url = `mysql://${user}:${password}@127.0.0.1:${port}`;
  return startPrivateServer({
    name: flavour.isMysql ? 'MySQL' : 'MariaDB',
    url,
    port,
    directory,
    command: {
      file: flavour.binary,
      args: [
        ...serverArguments(flavour, { directory, port }),
        `--init-file=${join(directory, 'init.sql')}`,
        '--skip-log-bin',
        ...(flavour.isMysql ? ['--performance-schema=OFF'] : []),
        ...args,
      ],
      env: { ...databaseEnv, ...env },
    },
    answers: () => answers(url),
  });
}

/** Options of a server that `startReplica` copies. */
export const primaryArguments = ['--server-id=1', '--log-bin=log', '--binlog-format=ROW'];

/** A private replica of a server, from its beginning, read-only except for the rig. */
export async function startReplica(primary: PrivateServer): Promise<PrivateServer> {
  const replica = await startMysql({ args: ['--server-id=2', '--read-only'] });
  const { isMysql } = await findFlavour();
  const source = { HOST: `'127.0.0.1'`, PORT: primary.port, USER: `'${user}'`, PASSWORD: `'${password}'` };
  const word = isMysql ? 'SOURCE' : 'MASTER';
  const settings = Object.entries(source).map(([name, value]) => `${word}_${name} = ${value}`);
  await execute(
    replica.url,
    isMysql
      ? `CHANGE REPLICATION SOURCE TO ${settings.join(', ')}, GET_SOURCE_PUBLIC_KEY = 1`
      : `CHANGE MASTER TO ${settings.join(', ')}`,
  );
  await execute(replica.url, 'START REPLICA');
  return replica;
}

/** A fresh, empty database with a random name; resolves to its URL. */
export async function createDatabase(serverUrl: string): Promise<string> {
  const url = new URL(serverUrl);
  url.pathname = `/account_${randomBytes(6).toString('hex')}`;
  // Names the character set, because a server without configuration files may default to latin1.
  await execute(serverUrl, `CREATE DATABASE ${url.pathname.slice(1)} CHARACTER SET utf8mb4`);
  return url.href;
}

/** Drops a database of createDatabase(). */
export async function dropDatabase(databaseUrl: string): Promise<void> {
  await execute(databaseUrl, `DROP DATABASE IF EXISTS ${new URL(databaseUrl).pathname.slice(1)}`);
}

export async function findFlavour(names = ['mysqld', 'mariadbd']): Promise<Flavour> {
  const binary = findBinary(names);
  if (binary === undefined) throw new Error('neither mysqld nor mariadbd is installed');
  const { stdout } = await run(binary, ['--version'], { env: databaseEnv });
  // Debian's MariaDB is also installed as mysqld.
  if (stdout.includes('MariaDB')) return { binary, version: stdout, isMysql: false, first: ['--no-defaults'] };
  const version = stdout;
  return { binary, version, isMysql: true, first: (await bringsNoDefaults(binary)) ? [] : ['--no-defaults'] };
}

// A wrapper script may pass --no-defaults itself. MySQL accepts it only as the first argument, and only once.
async function bringsNoDefaults(binary: string): Promise<boolean> {
  try {
    await run(binary, ['--no-defaults', ...runsAs, '--secure-file-priv=', '--validate-config'], { env: databaseEnv });
    return false;
  } catch (error) {
    return String((error as { stderr?: string }).stderr).includes("unknown option '--no-defaults'");
  }
}

/** The initial data directory: created once per version, because that takes seconds, then copied. */
export async function initialData(flavour: Flavour): Promise<string> {
  const name = createHash('sha256').update(flavour.version).digest('hex').slice(0, 16);
  const directory = join(import.meta.dirname, '../../../node_modules/.cache/database', name);
  if (existsSync(directory)) return directory;
  const unfinished = temporaryDirectory('new-mysql');
  await initialize(flavour, unfinished);
  await mkdir(join(directory, '..'), { recursive: true });
  const mine = `${directory}.${process.pid}`;
  await cp(join(unfinished, 'data'), mine, { recursive: true });
  // Atomic; another process may have been first.
  await rename(mine, directory).catch(() => rm(mine, { recursive: true }));
  return directory;
}

async function initialize({ binary, isMysql, first }: Flavour, directory: string): Promise<void> {
  const datadir = `--datadir=${join(directory, 'data')}`;
  if (isMysql) {
    await run(
      binary,
      [...first, ...runsAs, '--secure-file-priv=', '--skip-log-bin', '--initialize-insecure', datadir],
      { env: databaseEnv },
    );
    return;
  }
  const installer = findBinary(['mariadb-install-db', 'mysql_install_db']);
  if (installer === undefined) throw new Error('mariadb-install-db, which belongs to MariaDB, is not installed');
  const quick = ['--skip-test-db', '--auth-root-authentication-method=normal', smallLog];
  await run(installer, [...first, ...runsAs, ...quick, datadir, ownTemporaryFiles(directory)], { env: databaseEnv });
}

// A starting MariaDB, also at its initialization, deletes the temporary tables it finds, including those of others.
const ownTemporaryFiles = (directory: string): string => `--tmpdir=${directory}`;

/** By address: names are not resolved. */
export const accountStatements = `
CREATE USER IF NOT EXISTS '${user}'@'127.0.0.1' IDENTIFIED BY '${password}';
GRANT ALL ON *.* TO '${user}'@'127.0.0.1' WITH GRANT OPTION;
`;

// MariaDB's default is 96 MB, copied for each server.
const smallLog = '--innodb-log-file-size=16M';

/** Small, but durable like production: acknowledged changes must survive a kill. */
export const serverArguments = (
  { isMysql, first }: Flavour,
  { directory, port, runAs = runsAs }: { directory: string; port: number; runAs?: string[] },
): string[] => [
  ...first,
  ...runAs,
  `--datadir=${join(directory, 'data')}`,
  `--socket=${join(directory, 'mysqld.sock')}`,
  `--pid-file=${join(directory, 'mysqld.pid')}`,
  `--port=${port}`,
  ownTemporaryFiles(directory),
  '--bind-address=127.0.0.1',
  '--skip-name-resolve',
  '--max-connections=400',
  '--innodb-flush-log-at-trx-commit=1',
  '--innodb-buffer-pool-size=64M',
  ...(isMysql ? ['--secure-file-priv=', '--mysqlx=OFF'] : [smallLog]),
];

async function answers(url: string): Promise<boolean> {
  await execute(url, 'SELECT 1');
  return true;
}

async function execute(url: string, sql: string): Promise<void> {
  const connection = await createConnection({ uri: url, connectTimeout: 5_000 });
  try {
    await connection.query(sql);
  } finally {
    // end() would wait for an unresponsive server.
    connection.destroy();
  }
}
