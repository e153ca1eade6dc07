import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const parts = [
  { names: ['mysqld', 'mariadbd'], replacedBy: 'MYSQL_URL', debianPackage: 'mariadb-server' },
  { names: ['redis-server'], replacedBy: 'REDIS_URL', debianPackage: 'redis-server' },
];

/*
 * Nothing here blocks the process while it installs: what a test starts at the same time would exceed its own time limits.
 */

/**
 * Ensures that a MySQL or MariaDB server and a Redis server are installed, unless MYSQL_URL and REDIS_URL name running
 * ones. On Debian, as root, missing ones are installed; elsewhere an Error says what to install.
 */
export async function requireBinaries(): Promise<void> {
  const missing = missingParts();
  if (missing.length === 0) return;
  const list = missing.map(({ names, replacedBy }) => `${names.join(' or ')} (or set ${replacedBy})`).join(', ');
  const need = await installOnDebian(
    list,
    missing.map((part) => part.debianPackage),
  );
  if (missingParts().length > 0) throw new Error(need);
}

/** The path of a program for some tests only; installed like those above if missing. */
export function requireBinary({ names, debianPackage }: { names: string[]; debianPackage: string }): Promise<string> {
  return required(() => findBinary(names), names.join(' or '), debianPackage);
}

/** The same for a file with this path in Debian. */
export function requireFile({ path, debianPackage }: { path: string; debianPackage: string }): Promise<string> {
  return required(() => (existsSync(path) ? path : undefined), path, debianPackage);
}

async function required(find: () => string | undefined, what: string, debianPackage: string): Promise<string> {
  const installed = find();
  if (installed !== undefined) return installed;
  const need = await installOnDebian(what, [debianPackage]);
  const path = find();
  if (path === undefined) throw new Error(need);
  return path;
}

/** Returns a sentence that says what to install. */
async function installOnDebian(what: string, packages: string[]): Promise<string> {
  const need = `The tests need: ${what}. On Debian: apt-get install ${packages.join(' ')}`;
  const isRootOnDebian = process.getuid?.() === 0 && existsSync('/etc/debian_version');
  if (!isRootOnDebian) throw new Error(need);
  try {
    await install(packages);
  } catch (cause) {
    throw new Error(`${need}\n${(cause as Error).message}`, { cause });
  }
  return need;
}

const missingParts = () =>
  parts.filter(({ names, replacedBy }) => !process.env[replacedBy] && findBinary(names) === undefined);

/** The path of the first installed one of these programs, also outside the PATH. */
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

// The packages may start services, or be prevented from it: tests use private instances on other ports.
async function install(packages: string[]): Promise<void> {
  console.log(`Installing ${packages.join(', ')} …`);
  const args = ['-oDPkg::Lock::Timeout=300', 'install', '-y', '--no-install-recommends', ...packages];
  // A new machine has no lists of packages yet, or old ones.
  await aptGet(args).catch(() => aptGet(['update']).then(() => aptGet(args)));
}

async function aptGet(args: string[]): Promise<void> {
  // Test files that install concurrently take turns: `update` does not wait for a lock.
  const turn = ['--timeout', '300', join(tmpdir(), 'account-service-tests-apt.lock')];
  try {
    await promisify(execFile)('flock', [...turn, 'apt-get', ...args], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      maxBuffer: 1e8,
    });
  } catch (cause) {
    const { message, stdout = '' } = cause as Error & { stdout?: string };
    // The message ends with the output on stderr.
    throw new Error(`${message}\n${stdout}`, { cause });
  }
}
