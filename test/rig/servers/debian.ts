import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

const parts = [
  { names: ['mysqld', 'mariadbd'], replacedBy: 'MYSQL_URL', debianPackage: 'mariadb-server' },
  { names: ['redis-server'], replacedBy: 'REDIS_URL', debianPackage: 'redis-server' },
];

/**
 * Sees to it that a MySQL or MariaDB server and a Redis server are installed, unless MYSQL_URL and REDIS_URL name running
 * ones. On Debian, as root, what is missing is installed; elsewhere an Error says what to install.
 */
export function requireBinaries(): void {
  const missing = missingParts();
  if (missing.length === 0) return;
  const list = missing.map(({ names, replacedBy }) => `${names.join(' or ')} (or set ${replacedBy})`).join(', ');
  const need = installOnDebian(
    list,
    missing.map((part) => part.debianPackage),
  );
  if (missingParts().length > 0) throw new Error(need);
}

/** The path of a program that only some tests need; installed like those above if it is missing. */
export function requireBinary({ names, debianPackage }: { names: string[]; debianPackage: string }): string {
  return required(() => findBinary(names), names.join(' or '), debianPackage);
}

/** The same for a file that Debian has at this path. */
export function requireFile({ path, debianPackage }: { path: string; debianPackage: string }): string {
  return required(() => (existsSync(path) ? path : undefined), path, debianPackage);
}

function required(find: () => string | undefined, what: string, debianPackage: string): string {
  const installed = find();
  if (installed !== undefined) return installed;
  const need = installOnDebian(what, [debianPackage]);
  const path = find();
  if (path === undefined) throw new Error(need);
  return path;
}

/** Answers the sentence that says what is needed, for whoever still does not find it. */
function installOnDebian(what: string, packages: string[]): string {
  const need = `The tests need: ${what}. On Debian: apt-get install ${packages.join(' ')}`;
  const isRootOnDebian = process.getuid?.() === 0 && existsSync('/etc/debian_version');
  if (!isRootOnDebian) throw new Error(need);
  try {
    install(packages);
  } catch (cause) {
    throw new Error(`${need}\n${(cause as Error).message}`, { cause });
  }
  return need;
}

const missingParts = () =>
  parts.filter(({ names, replacedBy }) => !process.env[replacedBy] && findBinary(names) === undefined);

/** The path of the first of these programs that is installed, also where a server's user has it off the PATH. */
export function findBinary(names: string[]): string | undefined {
  const directories = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/libexec'].filter(Boolean);
  return directories.flatMap((directory) => names.map((name) => join(directory, name))).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

// The packages may start services of their own, or be denied to: the tests use private instances on other ports.
function install(packages: string[]): void {
  console.log(`Installing ${packages.join(', ')} …`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  // Test files that need something at the same time take turns: `update` waits for no lock by itself.
  const aptGet = ['--timeout', '300', join(tmpdir(), 'account-service-tests-apt.lock'), 'apt-get'];
  run('flock', [...aptGet, 'update'], env);
  run('flock', [...aptGet, '-oDPkg::Lock::Timeout=300', 'install', '-y', '--no-install-recommends', ...packages], env);
}

function run(file: string, args: string[], env: NodeJS.ProcessEnv): void {
  try {
    execFileSync(file, args, { env, stdio: 'pipe', encoding: 'utf8' });
  } catch (cause) {
    const { message, stdout = '' } = cause as Error & { stdout?: string };
    // The message ends with what was written to stderr.
    throw new Error(`${message}\n${stdout}`, { cause });
  }
}
